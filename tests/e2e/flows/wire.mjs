// A client that is nothing but HTTP: what goes over the wire is what stands here.

export const MODERN = '2026-07-28';
export const LEGACY = '2025-11-25';
const PREFIX = 'io.modelcontextprotocol/';
/** The longest that anything here waits for the edge. */
const PATIENCE_MS = 30_000;

/** One tenant's way to the edge, or without a token to a worker itself. */
export class Wire {
  constructor(url, token) {
    Object.assign(this, { url, token });
  }

  async send(method, headers = {}, body = undefined) {
    const leave = new AbortController();
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const response = await fetch(this.url, {
      method,
      headers: {
        Accept: 'application/json, text/event-stream',
        ...(this.token && { Authorization: `Bearer ${this.token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: method === 'GET' || body?.method === 'subscriptions/listen'
        ? leave.signal : AbortSignal.any([leave.signal, patience]),
    });
    return new Answer(response, leave);
  }

  /** A request of 2026-07-28: self-describing, its headers taken from its body unless given. */
  modern(method, params = {}, { id = 1, headers = {}, meta = {}, capabilities = {} } = {}) {
    const name = params.name ?? params.uri ?? params.taskId;
    return this.send('POST', {
      'MCP-Protocol-Version': MODERN, 'Mcp-Method': method, ...(name && { 'Mcp-Name': encoded(name) }), ...headers,
    }, {
      jsonrpc: '2.0', id, method,
      params: {
        ...params,
        _meta: {
          [`${PREFIX}protocolVersion`]: MODERN,
          [`${PREFIX}clientCapabilities`]: capabilities,
          [`${PREFIX}clientInfo`]: { name: 'flows', version: '1' },
          ...meta,
        },
      },
    });
  }

  initialize(capabilities = {}) {
    const params = { protocolVersion: LEGACY, capabilities, clientInfo: { name: 'flows', version: '1' } };
    return this.send('POST', {}, { jsonrpc: '2.0', id: 0, method: 'initialize', params });
  }

  /** A legacy session, opened and confirmed. */
  async open(capabilities) {
    const answer = await this.initialize(capabilities);
    const id = answer.headers.get('mcp-session-id');
    const told = await answer.response(0);
    if (!told.result) throw Object.assign(new Error(`initialize: ${JSON.stringify(told)}`), { status: answer.status });
    const session = new Session(this, id, told.result);
    const confirmed = await session.post({ method: 'notifications/initialized' });
    const text = await confirmed.text();
    if (confirmed.status !== 202) throw Object.assign(new Error(`initialized: ${text}`), { status: confirmed.status });
    return session;
  }
}

export class Session {
  constructor(wire, id, opened) {
    Object.assign(this, { wire, id, opened });
  }

  get headers() {
    return { 'Mcp-Session-Id': this.id, 'MCP-Protocol-Version': this.opened.protocolVersion };
  }

  post(message) {
    return this.wire.send('POST', this.headers, { jsonrpc: '2.0', ...message });
  }

  request(method, params, id = 1) {
    return this.post({ id, method, ...(params && { params }) });
  }

  stream(last) {
    return this.wire.send('GET', { ...this.headers, Accept: 'text/event-stream', ...(last && { 'Last-Event-ID': last }) });
  }

  end() {
    return this.wire.send('DELETE', this.headers);
  }
}

export class Answer {
  constructor(response, leave) {
    Object.assign(this, { raw: response, status: response.status, headers: response.headers, leave });
    this.comments = 0;
    this.lastEvent = undefined;
    this.pending = undefined;
  }

  text() {
    return this.raw.text();
  }

  /** Closes the connection in the middle of the answer. */
  hangUp() {
    this.leave.abort();
  }

  /** The next JSON-RPC message, or undefined at the end; a JSON answer is one message. */
  async next() {
    this.pending ??= this.messages();
    const { value, done } = await this.pending.next();
    return done ? undefined : value;
  }

  async *messages() {
    if (!(this.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
      const text = await this.text();
      if (text) yield JSON.parse(text);
      return;
    }
    let data = [];
    for await (const line of lines(this.raw.body)) {
      if (line.startsWith(':')) this.comments += 1;
      else if (line.startsWith('id:')) this.lastEvent = line.slice(3).trim();
      else if (line.startsWith('data:')) data.push(line.slice(5).trim());
      else if (line === '') {
        const text = data.join('\n');
        data = [];
        // An event without data only primes the stream's id; it is passed so that a reader can leave there.
        yield text ? JSON.parse(text) : { primed: this.lastEvent };
      }
    }
  }

  /** The response to the request with this id; what comes before it is collected in `before`. */
  async response(id, before = []) {
    for (let message; (message = await this.next()); ) {
      if ('id' in message && !('method' in message) && (message.id === id || message.id === null)) return message;
      before.push(message);
    }
    throw new Error(`${this.status}: ended without a response to ${JSON.stringify(id)}`);
  }
}

async function* lines(body) {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const whole = rest.split(/\r\n|\n|\r(?!$)/);
    rest = whole.pop();
    yield* whole;
  }
}

/** A value as a header takes it: in the base64 form where ASCII does not do. */
export function encoded(value) {
  return /^[\x21-\x7e]+$/.test(value) ? value : sentinel(value);
}

export const sentinel = (value) => `=?base64?${Buffer.from(value).toString('base64')}?=`;
