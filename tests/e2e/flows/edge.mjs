// The edge before the workers, each of them a tenant of its own.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

import { Process } from './process.mjs';

const run = promisify(execFile);

/** Starts the real binary with a manifest of these workers. A worker's key is made here unless it has one already. */
export async function startEdge(folder, fleet) {
  const manifest = fleet.map(({ w, port }) => {
    const key = `${folder}/${w.name}.key`;
    if (!existsSync(key)) writeFileSync(key, randomBytes(32).toString('hex'), { mode: 0o600 });
    return { tenant: w.name, address: `127.0.0.1:${port}`, token_file: `${w.name}.key`, path: w.path, ...w.manifest };
  });
  writeFileSync(`${folder}/workers.json`, JSON.stringify({ workers: manifest }));
  const edge = new Process('edge', [
    process.env.PLAYGROUND_BIN, 'mcp-http', '--bind', '127.0.0.1:0', '--state', `${folder}/state`, '--drain-secs', '10',
    '--faculties-workers', `${folder}/workers.json`,
  ], { log: folder });
  edge.start();
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(await edge.line(/^ready http/, { ms: 30_000 }));
  return { process: edge, url: `${url}/mcp` };
}

export async function mint(folder, tenant) {
  const argv = ['token', 'mint', tenant, '--catalogue', 'native', '--state', `${folder}/state`];
  return (await run(process.env.PLAYGROUND_BIN, argv, { timeout: 30_000 })).stdout.trim();
}
