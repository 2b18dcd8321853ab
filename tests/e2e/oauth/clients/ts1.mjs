// The TypeScript SDK, version 1.
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { typescript } from './typescript.mjs';

export const connect = () => typescript({
  client: () => new Client({ name: 'e2e', version: '1' }),
  Transport: StreamableHTTPClientTransport,
  Unauthorized: UnauthorizedError,
  finish: (transport, answer) => transport.finishAuth(answer.get('code')),
});
