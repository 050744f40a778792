// What modules ask a browser for where there is none: storage, the root of the document, and answers of the service.

/** What is stored; tests fill and read it. */
export const storage = new Map();
globalThis.localStorage = {
  getItem: (name) => storage.get(name) ?? null,
  setItem: (name, value) => storage.set(name, String(value)),
  removeItem: (name) => storage.delete(name),
};
globalThis.document = { documentElement: { dataset: {} } };

/** Requests since the last `answers`: method, path, headers and body. */
export const asked = [];
let answer = () => json(404, { code: 'not_found', detail: 'nothing is here' });

/** An answer of the service. */
export const json = (status, body, headers = {}) =>
  new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } });

/** From now on `respond` answers every request. */
export function answers(respond) {
  asked.length = 0;
  answer = respond;
}

globalThis.fetch = async (path, { method = 'GET', headers = {}, body, ...more } = {}) => {
  const request = { method, path, headers, body: body === undefined ? null : JSON.parse(body), ...more };
  asked.push(request);
  return answer(request);
};
