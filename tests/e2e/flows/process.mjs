// Processes of ours: started, listened to, and ended by their own handle.
import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

const READY_MS = 40_000;
const started = new Set();

export class Process {
  constructor(name, argv, { log, env = {} }) {
    Object.assign(this, { name, argv, log, env, told: [], waiting: new Set() });
  }

  start() {
    const [program, ...rest] = this.argv;
    this.child = spawn(program, rest, { env: { ...process.env, ...this.env }, stdio: ['ignore', 'pipe', 'pipe'] });
    this.exited = new Promise((resolve) => this.child.once('exit', (code, signal) => resolve(code ?? signal)));
    started.add(this);
    this.exited.then(() => started.delete(this));
    const log = createWriteStream(`${this.log}/${this.name}.log`, { flags: 'a' });
    for (const output of [this.child.stdout, this.child.stderr]) {
      createInterface({ input: output }).on('line', (line) => {
        log.write(`${line}\n`);
        this.told.push(line);
        for (const wake of this.waiting) wake();
      });
    }
  }

  /** The first line, of those after `from`, that matches. */
  async line(pattern, { from = 0, ms = 15_000 } = {}) {
    const until = Date.now() + ms;
    for (;;) {
      const found = this.told.slice(from).find((line) => pattern.test(line));
      if (found) return found;
      const left = until - Date.now();
      if (left <= 0) throw new Error(`${this.name} has not said ${pattern}`);
      let wake;
      const said = new Promise((resolve) => { wake = resolve; });
      this.waiting.add(wake);
      await Promise.race([said, this.exited, pause(left, undefined, { ref: false })]);
      this.waiting.delete(wake);
      if (this.child.exitCode !== null && !this.told.slice(from).some((line) => pattern.test(line))) {
        throw new Error(`${this.name} left ${this.child.exitCode} without saying ${pattern}`);
      }
    }
  }

  /** Until something accepts connections at the port. */
  async listening(port) {
    for (const until = Date.now() + READY_MS; Date.now() < until; await pause(100)) {
      if (this.child.exitCode !== null) throw new Error(`${this.name} left ${this.child.exitCode}`);
      const open = await new Promise((resolve) => {
        const socket = connect({ host: '127.0.0.1', port }, () => { socket.destroy(); resolve(true); });
        socket.once('error', () => resolve(false));
      });
      if (open) return;
    }
    throw new Error(`${this.name} does not listen on ${port}`);
  }

  async kill(signal = 'SIGKILL') {
    this.child.kill(signal);
    const ended = await Promise.race([this.exited, pause(20_000, undefined, { ref: false })]);
    if (ended === undefined) {
      this.child.kill('SIGKILL');
      throw new Error(`${this.name} does not end on ${signal}`);
    }
    return ended;
  }
}

export async function endAll() {
  await Promise.all([...started].map((process) => process.kill().catch(() => {})));
}

/** A port that nobody has at the moment; a worker keeps it over its restarts. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
