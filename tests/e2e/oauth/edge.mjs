// The real edge over HTTPS, at which clients log in. CERTS names the folder of `playground cert dev`.
//
// It has two faces on one port: at `localhost` clients can log in, at `127.0.0.1` a token is all that counts.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';

import { Process, freePort } from '../flows/process.mjs';

const run = promisify(execFile);
const TENANT = 'alice';

export async function startEdge(folder) {
  const { PLAYGROUND_BIN: bin, CERTS: certs } = process.env;
  const port = await freePort();
  const origin = `https://localhost:${port}`;
  writeFileSync(`${folder}/playground.toml`, `[oauth]\npublic_url = "${origin}"\nbearer_hosts = ["127.0.0.1"]\n`);
  const state = ['--state', `${folder}/state`];
  const playground = async (...argv) => (await run(bin, [...argv, ...state], { timeout: 60_000 })).stdout.trim();
  const edge = new Process('edge', [
    bin, 'serve', '--config', `${folder}/playground.toml`, '--bind', `127.0.0.1:${port}`, ...state,
    '--tls-cert', `${certs}/dev.pem`, '--tls-key', `${certs}/dev.key`,
    // The documents of clients are on this machine as well.
    '--dangerously-fetch-from-loopback', `${certs}/dev-ca.pem`,
  ], { log: folder });
  edge.start();
  await edge.line(/^ready https/, { ms: 30_000 });
  return {
    origin,
    url: `${origin}/mcp`,
    bearerOrigin: `https://127.0.0.1:${port}`,
    bearerUrl: `https://127.0.0.1:${port}/mcp`,
    told: edge.told,
    /** A small account, and a token for it. */
    account: () => playground('user', 'create', TENANT, '--disk', '256MiB'),
    invite: (...flags) => playground('invite', 'create', TENANT, ...flags),
    /** The disks' piles are append-only, and only this removes them. */
    async end() {
      await playground('user', 'destroy', TENANT, '--yes', '--delete-pile');
      const code = await edge.kill('SIGTERM');
      if (code !== 0) throw new Error(`the edge left ${code} after SIGTERM`);
    },
  };
}
