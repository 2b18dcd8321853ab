// The official Python SDK's client.
import { python } from './python.mjs';

export const connect = python('mcp');
