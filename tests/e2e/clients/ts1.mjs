// The TypeScript SDK, version 1: legacy revisions alone.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

export const connect = (target) => async (who) => {
  const client = new Client({ name: 'e2e', version: '1' });
  const transport = target.url
    ? new StreamableHTTPClientTransport(new URL(target.url), {
      requestInit: { headers: { Authorization: `Bearer ${target.tokens[who]}` } },
    })
    : new StdioClientTransport({ command: target.argv[who][0], args: target.argv[who].slice(1), stderr: 'inherit' });
  await client.connect(transport);
  return {
    version: transport.protocolVersion,
    publicSession: transport.sessionId,
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: (name, args) => client.callTool({ name, arguments: args }),
    close: async () => {
      if (target.url) await transport.terminateSession();
      await client.close();
    },
  };
};
