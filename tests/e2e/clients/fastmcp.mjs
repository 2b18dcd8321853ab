// FastMCP's client.
import { python } from './python.mjs';

export const connect = python('fastmcp');
