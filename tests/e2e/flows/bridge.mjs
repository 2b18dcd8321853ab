// Clients held to the stateless revision at workers that know sessions alone, the edge's bridge between them: everything
// that such a client can do, and what the worker sees of it.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { equal, holds, until, words } from './flows.mjs';
import { MODERN } from './wire.mjs';

const HERE = new URL('.', import.meta.url).pathname;
const run = promisify(execFile);
const { connect } = await import(`${process.env.E2E_CLIENTS}/ts2.mjs`);

export async function over(fleet, step) {
  await Promise.all(fleet.map(async (lane) => {
    await step(lane.w, 'bridge ts2', () => typescript(lane));
    await step(lane.w, 'bridge mcp', () => python(lane));
  }));
}

async function typescript({ w, wire, process }) {
  const { client, version, close } = await connect({ url: wire.url, tokens: { a: wire.token } }, { pin: MODERN })('a');
  const { resource, prompt, changes: [name, args], calms, lists } = w.bridge;
  try {
    equal(version, MODERN, 'revision');
    const told = [];
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => { told.push(params.uri); });
    client.setNotificationHandler('notifications/tools/list_changed', () => { told.push('tools'); });
    holds((await client.listTools()).tools.some((tool) => tool.name === name), 'a tool is not listed');
    holds((await client.listPrompts()).prompts.some((listed) => listed.name === prompt), 'a prompt is not listed');
    holds((await client.getPrompt({ name: prompt })).messages.length, 'the prompt is empty');
    await client.listResources();
    equal((await client.readResource({ uri: resource })).contents[0].uri, resource, 'resource');

    const progress = [];
    const [sleep, ms] = w.sleep(200, 'ts2');
    const slept = await client.callTool({ name: sleep, arguments: ms }, { onprogress: (one) => progress.push(one.progress) });
    holds(!slept.isError && progress.length, `progress ${progress}, ${JSON.stringify(slept)}`);

    const from = process.told.length;
    const subscription = await client.listen({ resourceSubscriptions: [resource], toolsListChanged: true });
    equal(subscription.honoredFilter.resourceSubscriptions?.join(), resource, 'honoured resources');
    equal(subscription.honoredFilter.toolsListChanged, true, 'honoured lists');
    await client.callTool({ name, arguments: args });
    await until(() => told.includes(resource), 'the change of the resource is told');
    if (lists) await until(() => told.includes('tools'), 'the change of the list is told');
    if (calms) await client.callTool({ name: calms[0], arguments: calms[1] });
    await subscription.close();
    equal(await subscription.closed, 'local', 'who ended the subscription');
    if (!w.marks) return;
    await process.line(/^stops watching/, { from });
    const leaves = new AbortController();
    const [long, forever] = w.sleep(20_000, 'ts2-left');
    const left = client.callTool({ name: long, arguments: forever }, { signal: leaves.signal });
    left.catch(() => {});
    await process.line(/^sleep ts2-left started/, { from });
    leaves.abort();
    await process.line(/^sleep ts2-left cancelled/, { from });
  } finally {
    await close();
  }
}

async function python({ w, wire, process: worker }) {
  const from = worker.told.length;
  const asked = {
    ...w.bridge, url: wire.url, token: wire.token, mode: MODERN,
    sleep: w.sleep(200, 'mcp'), long: w.marks && w.sleep(20_000, 'mcp-left'),
  };
  const { stdout } = await run(process.env.E2E_PYTHON, [`${HERE}bridge.py`], {
    env: { ...process.env, FLOWS_ASKED: JSON.stringify(asked) }, timeout: 40_000,
  });
  const told = JSON.parse(stdout);
  equal(told.version, MODERN, 'revision');
  holds(told.listed && told.messages && told.progress, JSON.stringify(told));
  equal(told.read, w.bridge.resource, 'resource');
  equal(told.honoured, w.bridge.resource, 'honoured resources');
  holds(told.heard.includes(w.bridge.resource), `what was told: ${told.heard}`);
  if (w.marks) await worker.line(/^sleep mcp-left cancelled/, { from });
}
