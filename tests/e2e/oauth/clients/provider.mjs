// What a TypeScript client keeps of a login, in memory, and the person whom it asks.

/** `keep` holds what outlives a connection; `person` gets the address to open and yields where the browser ends. */
export function provider(keep, person) {
  return {
    get redirectUrl() { return 'http://127.0.0.1:7/callback'; },
    get clientMetadata() {
      return {
        client_name: 'E2E',
        redirect_uris: [this.redirectUrl],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      };
    },
    state: () => (keep.state = crypto.randomUUID()),
    clientInformation: () => keep.client,
    saveClientInformation: (client) => { keep.client = client; },
    tokens: () => keep.tokens,
    saveTokens: (tokens) => { keep.tokens = tokens; },
    saveCodeVerifier: (verifier) => { keep.verifier = verifier; },
    codeVerifier: () => keep.verifier,
    saveDiscoveryState: (state) => { keep.discovery = state; },
    discoveryState: () => keep.discovery,
    async redirectToAuthorization(address) {
      keep.answer = new URL(await person(address.href)).searchParams;
      if (keep.answer.get('state') !== keep.state) throw new Error('the state is not the one that was sent');
    },
  };
}

/** A fetch that tells `seen` every address. */
export const watched = (seen) => (address, ...rest) => {
  seen.push(String(address.url ?? address));
  return fetch(address, ...rest);
};
