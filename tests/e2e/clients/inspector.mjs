// The Inspector's command line. Over HTTP every call is a process and a connection of its own; over stdio its
// connection keeper holds the server between calls, since a server's handles end with its standard input.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const bin = new URL('../node_modules/.bin/', import.meta.url).pathname;
const home = mkdtempSync(join(tmpdir(), 'e2e-inspector-'));
const env = {
  PATH: process.env.PATH,
  HOME: home,
  MCP_INSPECTOR_SECRET_STORE: 'memory',
  MCP_INSPECTOR_DAEMON_DIR: join(home, 'daemon'),
  MCP_INSPECTOR_DAEMON_TOKEN: randomBytes(32).toString('base64url'),
};

export const connect = (target, mode) => (target.url ? overHttp(target, mode) : overStdio(target, mode));

export async function finish() {
  await mcpdo('daemon', 'stop').catch(() => {});
  rmSync(home, { recursive: true, force: true });
}

const overHttp = (target, mode) => async (who) => {
  const once = (...method) => tool('mcp-inspector', '--cli', target.url, '--transport', 'http', '--protocol-era', mode,
    '--header', `Authorization: Bearer ${target.tokens[who]}`, '--format', 'json', '--quiet', '--method', ...method);
  await once('tools/list');
  return calls(once, (name, args) => once('tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)));
};

let connections = 0;

const overStdio = (target, mode) => async (who) => {
  const name = `${who}${(connections += 1)}`;
  await mcpdo('--connection', name, 'connect', '--transport', 'stdio', '--era', mode, '--', ...target.argv[who]);
  const once = (...method) => mcpdo('--connection', name, ...method);
  return {
    ...calls(once, (tool, args) => once('tools/call', '--tool-name', tool, '--tool-args-json', JSON.stringify(args))),
    close: () => mcpdo('disconnect', name),
  };
};

const calls = (once, call) => ({
  list: async () => (await once('tools/list')).tools.map((tool) => tool.name),
  call,
  close: async () => {},
});

const mcpdo = (...args) => tool('mcpdo', '--format', 'json', ...args);

async function tool(name, ...args) {
  let seen;
  try {
    seen = await run(process.execPath, [join(bin, name), ...args], { env, cwd: home, timeout: 60_000, maxBuffer: 1 << 24 });
  } catch (error) {
    // A tool's own failure leaves with code 5 and its result on stdout; that is an answer.
    if (error.code === 5 && error.stdout) seen = error;
    else throw new Error(`${name} left ${error.code}: ${error.stderr || error.stdout || error.message}`);
  }
  const answer = seen.stdout.trim() ? JSON.parse(seen.stdout) : {};
  return answer.result ?? answer;
}
