// The TypeScript client, version 2: legacy by default, and the stateless revision when asked to negotiate.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

export const connect = (target, mode) => async (who) => {
  const client = new Client({ name: 'e2e', version: '2' }, { versionNegotiation: { mode } });
  const transport = target.url
    ? new StreamableHTTPClientTransport(new URL(target.url), {
      requestInit: { headers: { Authorization: `Bearer ${target.tokens[who]}` } },
    })
    : new StdioClientTransport({ command: target.argv[who][0], args: target.argv[who].slice(1), stderr: 'inherit' });
  await client.connect(transport);
  return {
    client,
    version: client.getNegotiatedProtocolVersion(),
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: (name, args) => client.callTool({ name, arguments: args }),
    close: () => client.close(),
  };
};
