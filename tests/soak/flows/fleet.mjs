// The workers that are killed and come back, and the edge before them.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

import { Process, freePort } from '../../e2e/flows/process.mjs';
import { Wire } from '../../e2e/flows/wire.mjs';

const run = promisify(execFile);
const { PLAYGROUND_BIN: bin, SOAK_WORKERS: folder_of_workers } = process.env;

/** Tenant, kind, and what the kind has beyond calls of both eras. */
const TENANTS = [
  ['alice', 'conformance', { sessions: true, sleeps: true, tasks: true, listens: true }],
  ['bob', 'conformance', { sessions: true, sleeps: true, tasks: true, listens: true }],
  ['carol', 'echo', {}],
  ['dave', 'scripted', { sleeps: true, listens: true }],
];

export async function fleet(folder) {
  const lanes = await Promise.all(TENANTS.map(async ([tenant, kind, has]) => {
    const port = await freePort();
    const token = `${folder}/${tenant}.key`;
    writeFileSync(token, randomBytes(32).toString('hex'), { mode: 0o600 });
    const argv = [`${folder_of_workers}/${kind}-worker`, '--listen', `127.0.0.1:${port}`, '--token-file', token];
    const process = kind === 'scripted' ? new Scripted() : new Process(tenant, argv, { log: folder });
    const lane = { tenant, port, token, has, process, outages: [] };
    await process.start(port);
    await process.listening(port);
    return lane;
  }));
  writeFileSync(`${folder}/workers.json`, JSON.stringify({
    workers: lanes.map(({ tenant, port, token }) => ({ tenant, address: `127.0.0.1:${port}`, token_file: token })),
  }));
  const edge = new Process('edge', [
    bin, 'mcp-http', '--bind', '127.0.0.1:0', '--state', `${folder}/state`, '--drain-secs', '10', '--tenant-rate', '100000',
    // Short, so that sessions which were left have ended when the run looks.
    '--idle-timeout-secs', '15', '--max-sessions-per-tenant', '2000', '--faculties-workers', `${folder}/workers.json`,
  ], { log: folder });
  edge.start();
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(await edge.line(/^ready http/, { ms: 30_000 }));
  for (const lane of lanes) {
    const argv = ['token', 'mint', lane.tenant, '--catalogue', 'native', '--state', `${folder}/state`];
    lane.wire = new Wire(`${url}/mcp`, (await run(bin, argv, { timeout: 30_000 })).stdout.trim());
  }
  return { edge, lanes };
}

/** Kills a lane's worker, and starts it again after a while. */
export async function strike(lane, downMs) {
  const outage = { from: Date.now(), to: Infinity };
  lane.outages.push(outage);
  await lane.process.kill();
  await pause(downMs);
  await lane.process.start(lane.port);
  await lane.process.listening(lane.port);
  outage.to = Date.now();
}

/** Whether the lane's worker was away for a moment between then and now. */
export const disturbed = (lane, since) => lane.outages.some(({ to }) => to + AFTERMATH_MS >= since);

/** So long after a start a connection of before may still be found broken. */
const AFTERMATH_MS = 250;

/** A worker in this process: without sessions, in both eras, slow where it is asked to be. */
class Scripted {
  async start(port) {
    this.server = createServer((request, response) => this.serve(request, response).catch(() => response.destroy()));
    await new Promise((resolve, fail) => this.server.once('error', fail).listen(port, '127.0.0.1', resolve));
  }

  async listening() {}

  async kill() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async serve(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const message = chunks.length ? JSON.parse(Buffer.concat(chunks)) : {};
    if (!('id' in message) || request.method !== 'POST') return response.writeHead(202).end();
    const { id, method, params = {} } = message;
    const told = (result) => ({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } });
    const json = (result) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(told(result)));
    };
    const events = () => response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const event = (message) => response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
    switch (method) {
      case 'initialize':
        return json({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } });
      case 'server/discover':
        return json({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ttlMs: 0, cacheScope: 'public' });
      case 'tools/list':
        return json({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }], ttlMs: 0, cacheScope: 'private' });
      case 'subscriptions/listen': {
        const meta = { 'io.modelcontextprotocol/subscriptionId': id };
        events();
        return event({ method: 'notifications/subscriptions/acknowledged', params: { notifications: {}, _meta: meta } });
      }
      case 'tools/call': {
        if (params.name === 'echo') return json({ content: [{ type: 'text', text: params.arguments.text }] });
        const progressToken = params._meta?.progressToken;
        events();
        for (const progress of [0, 50, 100]) {
          if (response.destroyed) return;
          if (progressToken !== undefined) event({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
          if (progress < 100) await pause(params.arguments.ms / 2);
        }
        event(told({ content: [{ type: 'text', text: 'Progress was told.' }] }));
        return response.end();
      }
      default:
        return response.writeHead(404, { 'Content-Type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no such method' } }));
    }
  }
}
