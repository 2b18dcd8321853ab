// The TypeScript client, version 2. It looks who has answered (RFC 9207).
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

import { typescript } from './typescript.mjs';

export const connect = (mode) => typescript({
  client: () => new Client({ name: 'e2e', version: '2' }, { versionNegotiation: { mode } }),
  Transport: StreamableHTTPClientTransport,
  Unauthorized: UnauthorizedError,
  finish: (transport, answer) => transport.finishAuth(answer),
});
