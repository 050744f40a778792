// Calls of the API, the session, and the server's clock. The only module that fetches.
import { text } from '../text.js';

/** What is shown of a refusal begins like a sentence. */
const sentence = (words) => words && words.charAt(0).toUpperCase() + words.slice(1);

/** Of an answer without words, as a proxy gives one while the service restarts. */
function wordsOf(status) {
  if (status === 0) return text.problem.offline;
  return [502, 503, 504].includes(status) ? text.problem.away(status) : text.problem.unknown(status);
}

/**
 * Whether a login page came in place of an answer: the API sends nobody elsewhere, and says everything in JSON or CSV. A
 * proxy that cannot reach the service has a status of its own.
 */
function isInFront(answer) {
  if (answer.type === 'opaqueredirect') return true;
  const isOurs = /json|csv/.test(answer.headers.get('content-type') ?? '');
  return !isOurs && ((answer.ok && answer.status !== 204) || [401, 403, 407, 511].includes(answer.status));
}

/** An answer that is not a success, or none at all (status 0). */
export class Problem extends Error {
  constructor(status, body, retryS) {
    super(sentence(body?.detail) ?? wordsOf(status));
    this.status = status;
    /** @type {string} */
    this.code = body?.code ?? (status === 0 ? 'offline' : 'unknown');
    /** @type {{ field: string, message: string }[]} */
    this.errors = body?.errors ?? [];
    /** The first lines of a file that is not understood. @type {string[] | undefined} */
    this.seen = body?.seen;
    /** Seconds after which another attempt makes sense. */
    this.retryS = retryS;
  }

  /** The same may be accepted later; nothing that was typed is at fault. */
  get passes() {
    return [0, 429, 502, 503, 504].includes(this.status);
  }
}

// The server's clock: the `Date` of the newest answer, and what has passed since by a clock that no
// user can set. The device's own time of day may be wrong.
let serverMs = NaN;
let readAtMs = 0;

/** The time of day at the server, in ms; NaN before the first answer. */
export const serverNow = () => serverMs + (performance.now() - readAtMs);

function readClock(answer) {
  const date = Date.parse(answer.headers.get('date') ?? '');
  // An answer out of the browser's own cache has an old date: the clock never goes back by that.
  if (Number.isNaN(date) || date + 1000 < serverNow()) return;
  serverMs = date;
  readAtMs = performance.now();
}

/**
 * The document; throws a Problem.
 * @template {string} Path
 * @param {Path} path
 * @param {any} options
 * @returns {Promise<Answer<Path>>}
 */
export async function call(path, options = {}) {
  const { method = 'GET', body, ifMatch, signal, timeoutMs = 30_000, accept = [], raw = false, tagged } = options;
  const isFile = body instanceof Blob;
  const asked = performance.now();
  const late = AbortSignal.timeout(timeoutMs);
  let answer;
  let answered = null;
  try {
    answer = await fetch(path, {
      method,
      headers: {
        ...(body !== undefined && { 'Content-Type': isFile ? 'application/octet-stream' : 'application/json' }),
        ...(ifMatch && { 'If-Match': `"${ifMatch}"` }),
      },
      // A file goes as it is, from the disk and not through memory.
      body: isFile ? body : JSON.stringify(body),
      // Nothing of a user lies in the browser's cache; public documents are revalidated.
      cache: isPrivate(path) ? 'no-store' : 'no-cache',
      // To a login page, which may be of another site: it would look like no connection.
      redirect: 'manual',
      signal: signal ? AbortSignal.any([signal, late]) : late,
    });
    if (isInFront(answer)) answered = { code: 'login_in_front', detail: text.problem.inFront };
    else if (raw && answer.ok) answered = await answer.text();
    else if (answer.headers.get('content-type')?.includes('json')) answered = await answer.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, null, null);
  }
  const inFront = answered?.code === 'login_in_front';
  if (session.in_front !== inFront) setSession({ ...session, in_front: inFront });
  if (inFront) throw new Problem(answer.status, answered, null);
  // After a machine slept, an answer that waited with it says nothing about now.
  if (performance.now() - asked < 5_000) readClock(answer);
  tagged?.(answer.headers.get('etag'));
  if (answer.ok || accept.includes(answer.status)) return answered;
  const retry = Number(answer.headers.get('retry-after'));
  const problem = new Problem(answer.status, answered, retry > 0 ? retry : null);
  const ended = ['token_missing', 'token_invalid', 'account_disabled'].includes(problem.code);
  if (ended) forgetUser();
  throw problem;
}

function isPrivate(path) {
  return (
    path.startsWith('/api/auth') ||
    path.startsWith('/api/journal') ||
    path.startsWith('/api/trades') ||
    path.startsWith('/api/watchlists') ||
    (path.startsWith('/api/portfolio') && !path.startsWith('/api/portfolio/live-prices'))
  );
}

/**
 * @template {string} Path
 * @param {Path} path
 * @returns {Path}
 */
export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const encoded = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return /** @type {Path} */ (encoded.length ? `${path}?${encoded.join('&')}` : path);
}

/** @type {Session} */
export let session = {
  user: null,
  expires_at: null,
  registration: 'closed',
  version: null,
  web: null,
  login_pages: null,
  known: false,
  in_front: false,
};

/** @type {Set<() => void>} */
const watchers = new Set();
/** Calls `changed` whenever who is logged in, or the server's version, has changed. */
export const onSession = (changed) => {
  watchers.add(changed);
  return () => {
    watchers.delete(changed);
  };
};

function setSession(next) {
  const before = JSON.stringify(session);
  session = next;
  if (JSON.stringify(next) !== before) for (const changed of watchers) changed();
}

/** The login has ended, here or in another tab. */
export function forgetUser() {
  if (session.user) setSession({ ...session, user: null, expires_at: null });
}

/** Asks who is logged in: always answered 200, so that a guest's visit is no error. */
export async function askSession() {
  const answer = await call('/api/auth/session');
  setSession({ ...session, refused: undefined, ...answer, known: true });
}

export async function logOut(everywhere = false) {
  await call('/api/auth/logout', { method: 'POST', ...(everywhere ? { body: { everywhere } } : {}) });
  await askSession();
}
