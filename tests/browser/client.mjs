// A client that logs in, by hand: each step of it as the specifications have it, and nothing of a library's.
import { strict as assert } from 'node:assert';
import { createHash, randomBytes } from 'node:crypto';

const word = () => randomBytes(32).toString('base64url');

export class Client {
  /** From a refusal alone: where the server says how to log in, who does it, and where. */
  static async discover(url) {
    const refused = await post(url, '{}');
    assert.equal(refused.status, 401);
    const [, place] = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate'));
    const resource = await document(place);
    assert.equal(resource.resource, url);
    const [issuer] = resource.authorization_servers;
    const server = await document(`${issuer}/.well-known/oauth-authorization-server`);
    assert.equal(server.issuer, issuer);
    assert.deepEqual(server.code_challenge_methods_supported, ['S256']);
    return Object.assign(new Client(), { url, server });
  }

  async register(name, redirect) {
    const answer = await post(this.server.registration_endpoint, JSON.stringify({ client_name: name, redirect_uris: [redirect] }));
    assert.equal(answer.status, 201);
    this.id = (await answer.json()).client_id;
    this.redirect = redirect;
    return this;
  }

  /** It is known by the address of its own document (client id metadata document). */
  documented(address, redirect) {
    return Object.assign(this, { id: address, redirect });
  }

  /** The address that a browser is to open. */
  ask(more = {}) {
    Object.assign(this, { verifier: word(), state: word() });
    const challenge = createHash('sha256').update(this.verifier).digest('base64url');
    return `${this.server.authorization_endpoint}?${new URLSearchParams({
      response_type: 'code', client_id: this.id, redirect_uri: this.redirect, state: this.state, scope: 'mcp offline_access',
      code_challenge: challenge, code_challenge_method: 'S256', resource: this.url, ...more,
    })}`;
  }

  /** What the browser has brought back. */
  answered(parameters) {
    assert.equal(parameters.get('state'), this.state);
    assert.equal(parameters.get('iss'), this.server.issuer);
    for (const name of ['code', 'state', 'iss']) assert.ok(parameters.getAll(name).length <= 1, `${name} is there twice`);
    this.code = parameters.get('code');
    return parameters;
  }

  redeem() {
    return this.trade({
      grant_type: 'authorization_code', code: this.code, code_verifier: this.verifier, redirect_uri: this.redirect, resource: this.url,
    });
  }

  refresh(token) {
    return this.trade({ grant_type: 'refresh_token', refresh_token: token });
  }

  async trade(form) {
    const answer = await fetch(this.server.token_endpoint, {
      method: 'POST', body: new URLSearchParams({ client_id: this.id, ...form }),
    });
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    return { status: answer.status, ...await answer.json() };
  }

  async revoke(token) {
    const answer = await fetch(this.server.revocation_endpoint, {
      method: 'POST', body: new URLSearchParams({ client_id: this.id, token }),
    });
    return answer.status;
  }

  /** The status that a request with this token gets. */
  async status(token) {
    return (await this.call(token, 'tools/list', {})).status;
  }

  /** A file written and read back, in a sandbox session. */
  async work(token) {
    const tool = async (name, args) => {
      const answer = await this.call(token, 'tools/call', { name, arguments: args });
      assert.equal(answer.status, 200);
      const { result } = answer.body;
      assert.ok(!result.isError, JSON.stringify(result));
      return result;
    };
    const { session } = (await tool('open_session', {})).structuredContent;
    const ran = await tool('exec', { session, command: 'echo in' });
    assert.match(ran.content[0].text, /^in$/m);
    await tool('close_session', { session });
  }

  /** One request of the stateless era. */
  async call(token, method, params) {
    const answer = await fetch(this.url, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': method,
        ...params.name && { 'Mcp-Name': params.name },
      },
      body: JSON.stringify({
        jsonrpc: '2.0', id: 1, method,
        params: {
          ...params,
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': { name: 'browser', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': {},
          },
        },
      }),
    });
    const text = await answer.text();
    return { status: answer.status, body: answer.ok ? JSON.parse(text.replace(/^[\s\S]*^data: /m, '')) : text };
  }
}

const post = (url, body) => fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });

async function document(address) {
  const answer = await fetch(address);
  assert.equal(answer.status, 200, address);
  assert.match(answer.headers.get('content-type'), /^application\/json/);
  assert.equal(answer.headers.get('access-control-allow-origin'), '*');
  return answer.json();
}
