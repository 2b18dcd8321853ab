// drive.mjs CLIENT MODE ERA: runs the scenario with one client against the target that E2E_TARGET describes:
// {"url","tokens":{"a","b"}} over HTTP or {"argv":{"a":[…],"b":[…]}} over stdio. ERA is what must be negotiated, or `-`.
import { scenario } from './scenario.mjs';

const [name, mode, era] = process.argv.slice(2);
const target = JSON.parse(process.env.E2E_TARGET);
const { connect, finish } = await import(`./clients/${name}.mjs`);
const wrong = { ...target, tokens: { a: `${target.tokens?.a}x` } };

/** One request with a public session id, as either tenant. */
async function knock(session, who) {
  const answer = await fetch(target.url, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${target.tokens[who]}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Mcp-Session-Id': session,
      'MCP-Protocol-Version': '2025-11-25',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
  await answer.text();
  return answer.status;
}

let worst = 1;
try {
  worst = await scenario({
    connect: connect(target, mode),
    era: era === '-' ? undefined : era,
    knock: target.url && knock,
    denied: target.url && (() => connect(wrong, mode)('a')),
  });
} finally {
  await finish?.();
}
process.exit(worst);
