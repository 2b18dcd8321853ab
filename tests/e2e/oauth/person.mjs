// A person who allows a client, without a browser: reads the page that the client opens, types an invite code, and
// follows the answer as a browser would.

const PATIENCE = 15_000;

/** The address, with its answer, to which a browser is sent that allows what `address` asks for. */
export async function allow(address, invite) {
  const page = await ask(address);
  const action = /<form method="post" action="([^"]*)"/.exec(page)?.[1];
  const request = /<input type="hidden" name="request" value="([^"]*)"/.exec(page)?.[1];
  if (!action || !request) throw new Error(`there is no form on the page: ${text(page)}`);
  const form = new URLSearchParams({ request: plain(request), invite, decision: 'allow' });
  const answer = await ask(new URL(plain(action), address), { method: 'POST', body: form });
  const onward = /<meta http-equiv="refresh" content="0;url=([^"]*)"/.exec(answer)?.[1];
  if (!onward) throw new Error(`the page leads nowhere: ${text(answer)}`);
  return plain(onward);
}

async function ask(address, request = {}) {
  const answer = await fetch(address, { redirect: 'error', signal: AbortSignal.timeout(PATIENCE), ...request });
  const page = await answer.text();
  if (answer.status !== 200) throw new Error(`the page has status ${answer.status}: ${text(page)}`);
  return page;
}

function plain(html) {
  const named = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
  return html.replace(/&(?:#(\d+)|#x([0-9a-f]+)|([a-z]+));/gi, (whole, decimal, hex, name) => {
    if (decimal) return String.fromCodePoint(Number(decimal));
    return hex ? String.fromCodePoint(Number.parseInt(hex, 16)) : named[name] ?? whole;
  });
}

function text(page) {
  const main = page.replace(/<style>.*?<\/style>/gs, '').replace(/<[^>]*>/g, ' ');
  return plain(main).replace(/\s+/g, ' ').trim().slice(0, 300);
}
