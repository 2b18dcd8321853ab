// mcp-remote: a stdio server to its host, which is the version 1 SDK here. It keeps its login in files, waits for the
// browser at a port of its own, and prints the address to open where it finds no browser.
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const proxy = new URL('../node_modules/mcp-remote/dist/proxy.js', import.meta.url).pathname;
const CONNECT_MS = 30_000;

export const connect = () => async ({ url, keep = {}, person, token }) => {
  const home = keep.home ?? mkdtempSync(`${process.env.E2E_RUN}/mcp-remote-`);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [proxy, url, '--host', '127.0.0.1', ...(token ? ['--header', `Authorization:Bearer ${token}`] : [])],
    env: { HOME: home, MCP_REMOTE_CONFIG_DIR: home, NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS, PATH: home },
    stderr: 'pipe',
  });
  let last = '';
  createInterface({ input: transport.stderr }).on('line', (line) => {
    last = line;
    if (/^https:\/\/.*response_type=code/.test(line)) person?.(line).then(fetch).catch((fault) => console.error(fault.message));
  });
  const connection = new Client({ name: 'e2e', version: '1' });
  try {
    await connection.connect(transport, { timeout: CONNECT_MS });
  } catch (fault) {
    await connection.close();
    throw new Error(`${fault.message}: ${last}`);
  }
  if (!token && !keep.home) Object.defineProperties(keep, { home: { value: home }, tokens: { get: () => JSON.parse(readFileSync(kept(home), 'utf8')) } });
  return {
    list: async () => (await connection.listTools()).tools.map((tool) => tool.name),
    call: (name, args) => connection.callTool({ name, arguments: args }),
    spoil: () => writeFileSync(kept(home), JSON.stringify({ ...keep.tokens, access_token: 'spoilt' })),
    close: () => connection.close(),
  };
};

const kept = (home) => `${home}/${readdirSync(home, { recursive: true }).find((name) => name.endsWith('tokens.json'))}`;
