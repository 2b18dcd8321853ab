// ts2.mjs PORT: a worker of the TypeScript SDK, version 2. It has no sessions, and serves both eras.
import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { z } from 'zod';

function worker() {
  const server = new McpServer({ name: 'ts2', version: '1' });
  const said = (text) => ({ content: [{ type: 'text', text }] });
  server.registerTool('echo', { description: 'Answers with its text', inputSchema: z.object({ text: z.string() }) },
    ({ text }) => said(text));
  server.registerTool('told', { description: 'Answers with what came beside the arguments', inputSchema: z.object({}) },
    (_, { mcpReq, http }) => said(JSON.stringify({
      meta: mcpReq._meta ?? {}, headers: Object.fromEntries(http?.req?.headers ?? []),
    })));
  server.registerTool('sleep', {
    description: 'Waits, and says on standard output how that ended',
    inputSchema: z.object({ ms: z.number(), mark: z.string() }),
  }, async ({ ms, mark }, { mcpReq }) => {
    console.log(`sleep ${mark} started`);
    const token = mcpReq._meta?.progressToken;
    if (token !== undefined) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, progress: 1, total: 2 } });
    }
    const whole = await new Promise((resolve) => {
      const timer = setTimeout(resolve, ms, true);
      mcpReq.signal.addEventListener('abort', () => { clearTimeout(timer); resolve(false); });
    });
    console.log(`sleep ${mark} ${whole ? 'done' : 'cancelled'}`);
    return said(`slept ${mark}`);
  });
  return server;
}

createServer(toNodeHandler(createMcpHandler(worker))).listen(Number(process.argv[2]), '127.0.0.1');
