// The Python SDK, each connection a process of its own that is driven by lines of JSON (login.py).
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const script = new URL('login.py', import.meta.url).pathname;

export const connect = (mode) => async ({ url, keep = {}, person, token, seen = [] }) => {
  const child = spawn(process.env.E2E_PYTHON, [script, mode], {
    env: { ...process.env, E2E_PEER: JSON.stringify(token ? { url, token } : { url, keep }) },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const say = (...what) => child.stdin.write(`${JSON.stringify(what)}\n`);
  const heard = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`the client ended with ${await ended}`);
    const told = JSON.parse(value);
    if (told.error) throw new Error(told.error);
    return told;
  };
  let told = await heard();
  while (told.person) {
    say('answer', await person(told.person));
    told = await heard();
  }
  seen.push(...told.seen);
  Object.assign(keep, told.keep);
  const ask = async (...what) => {
    say(...what);
    const answer = await heard();
    Object.assign(keep, answer.keep);
    return answer.ok;
  };
  return {
    list: () => ask('list'),
    call: (name, args) => ask('call', name, args),
    // It believes what it was told of a token's life, and asks for another when that is over.
    spoil: () => ask('spoil'),
    close: async () => {
      child.stdin.end();
      const code = await ended;
      if (code !== 0) throw new Error(`the client ended with ${code}`);
    },
  };
};
