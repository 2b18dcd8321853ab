// What the edge itself says there is of everything that comes and goes.
import { request } from 'node:http';

/** Each gauge of `/metrics` with the sum of its series. */
export async function gauges(socketPath) {
  const { status, text } = await ask(socketPath, '/metrics');
  if (status !== 200) throw new Error(`/metrics says ${status}`);
  const names = new Set([...text.matchAll(/^# TYPE (\S+) gauge$/gm)].map(([, name]) => name));
  const sums = {};
  for (const [, name, value] of text.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{.*\})? ([-+.\deE]+)/gm)) {
    if (names.has(name)) sums[name] = (sums[name] ?? 0) + Number(value);
  }
  return sums;
}

async function ask(socketPath, path) {
  return new Promise((resolve, fail) => {
    const asked = request({ socketPath, path, headers: { Host: 'localhost' }, timeout: 10_000 }, (answer) => {
      const chunks = [];
      answer.on('data', (chunk) => chunks.push(chunk));
      answer.on('end', () => resolve({ status: answer.statusCode, text: Buffer.concat(chunks).toString() }));
      answer.on('error', fail);
    });
    asked.on('timeout', () => asked.destroy(new Error(`${path} is not answered`)));
    asked.on('error', fail);
    asked.end();
  });
}
