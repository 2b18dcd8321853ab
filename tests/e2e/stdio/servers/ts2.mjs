// ts2.mjs serve|reject: a stdio server of the TypeScript SDK, version 2, with sessions beside the newer era or without.
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

function server() {
  const server = new McpServer({ name: 'ts2', version: '1' });
  const said = (text) => ({ content: [{ type: 'text', text }] });
  server.registerTool('echo', { description: 'Answers with its text', inputSchema: z.object({ text: z.string() }) },
    ({ text }) => said(text));
  server.registerTool('pid', { description: 'Answers with its process id', inputSchema: z.object({}) },
    () => said(`${process.pid}`));
  server.registerTool('sleep', {
    description: 'Waits, and says on its standard error how that ended',
    inputSchema: z.object({ ms: z.number(), mark: z.string() }),
  }, async ({ ms, mark }, { mcpReq }) => {
    console.error(`sleep ${mark} started in ${process.pid}`);
    const token = mcpReq._meta?.progressToken;
    if (token !== undefined) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, progress: 1, total: 2 } });
    }
    const whole = await new Promise((resolve) => {
      const timer = setTimeout(resolve, ms, true);
      mcpReq.signal.addEventListener('abort', () => { clearTimeout(timer); resolve(false); });
    });
    console.error(`sleep ${mark} ${whole ? 'done' : 'cancelled'}`);
    return said(`slept ${mark}`);
  });
  return server;
}

serveStdio(server, { legacy: process.argv[2] });
