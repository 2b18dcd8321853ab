// The Python clients, each connection a process of its own that is driven by lines of JSON (bridge.py).
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const bridge = new URL('bridge.py', import.meta.url).pathname;

export const python = (kind) => (target, mode) => async (who) => {
  const peer = target.url ? { url: target.url, token: target.tokens[who] } : { argv: target.argv[who] };
  const child = spawn(process.env.E2E_PYTHON, [bridge, kind, mode], {
    env: { ...process.env, E2E_PEER: JSON.stringify(peer) }, stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${kind} ended with ${await ended}`);
    const told = JSON.parse(value);
    if (told.error) throw new Error(told.error);
    return told;
  };
  // One call at a time on a connection: the next waits for the answer to the last.
  let last = Promise.resolve();
  const ask = (...what) => {
    const turn = last.then(() => {
      child.stdin.write(`${JSON.stringify(what)}\n`);
      return answer();
    });
    last = turn.catch(() => {});
    return turn.then((told) => told.ok);
  };
  const { version } = await answer();
  return {
    version,
    list: () => ask('list'),
    call: (name, args) => ask('call', name, args),
    close: async () => {
      child.stdin.end();
      const code = await ended;
      if (code !== 0) throw new Error(`${kind} ended with ${code}`);
    },
  };
};
