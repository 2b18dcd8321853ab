// mcp-remote: a stdio server to its host, an HTTP client to the edge. The host here is the version 1 SDK.
import { connect as host } from './ts1.mjs';

const proxy = new URL('../node_modules/mcp-remote/dist/proxy.js', import.meta.url).pathname;

export const connect = (target, mode) => {
  const argv = Object.fromEntries(Object.entries(target.tokens).map(([who, token]) => [who, [
    process.execPath, proxy, target.url, '--header', `Authorization:Bearer ${token}`, '--silent',
    ...(mode === 'auto' ? ['--protocol', 'auto'] : []),
  ]]));
  return host({ argv });
};
