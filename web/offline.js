// Keeps the frame of the pages for when there is no connection (`worker.js`). The pages' permissions let scripts make
// one kind of address that is run as code, and this is it: the policy can be made once and knows one address.
const PATH = '/worker.js';

/** @type {any} */
const trusted = globalThis.trustedTypes;
const policy = trusted?.createPolicy('shell', { createScriptURL: () => PATH });
navigator.serviceWorker?.register(policy?.createScriptURL(PATH) ?? PATH).catch(() => {
  /* a browser may refuse to keep anything; then there is no page without a connection */
});

export {};
