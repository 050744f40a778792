// One stream a tab while it is looked at; polling where none can be had.
import { call, serverNow, withQuery } from './api.js';

const SILENT_MS = 45_000; // the server says something every 15 s
const HIDDEN_MS = 30_000; // a tab that nobody looks at gives its connection back
const POLL_MS = 15_000;
const LOOK_MS = 4_000; // a line that broke: whether the service is there at all
const FIRST_MS = 3_000;
const RETRY_MS = { first: 5_000, most: 120_000 };
const RENDER_MS = 1_000; // at most one change of the page a second

const values = new Map();
/** @type {Map<string, Set<(value: any) => void>>} */
const subscribers = new Map();
/** @type {Set<string>} */
const changed = new Set();

// All tabs share six connections: whoever opens a stream takes those of hidden tabs.
const tabs = new BroadcastChannel('streams');
tabs.onmessage = () => {
  if (document.visibilityState === 'hidden') close();
};

/** @type {EventSource | null} */
let source = null;
/** @type {string[]} */
let symbols = [];
let tag = '';
let heardAt = performance.now();
let retryMs = RETRY_MS.first;
let frozen = false;
let flushedAt = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let retry;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let closing;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let polling;

/** The last value of `snapshot`, `line`, `tick` or `quote NSE:INFY`; the last is told as `quotes`. */
export const valueOf = (topic) => values.get(topic);

export function on(topic, run) {
  const set = subscribers.get(topic) ?? new Set();
  subscribers.set(topic, set.add(run));
  if (values.has(topic)) run(values.get(topic));
  return () => {
    set.delete(run);
  };
}

function note(topic, value) {
  const isFirst = !values.has(topic);
  values.set(topic, value);
  changed.add(topic);
  // A page that has nothing to show yet is not kept waiting.
  if (isFirst || performance.now() - flushedAt >= RENDER_MS) flush();
}

function flush() {
  // What is frozen keeps the last state in `values` and shows it when it thaws.
  if (document.visibilityState === 'hidden') return;
  flushedAt = performance.now();
  const topics = [...changed].filter((topic) => !frozen || topic === 'line' || topic === 'frozen');
  for (const topic of topics) {
    changed.delete(topic);
    for (const run of [...(subscribers.get(topic) ?? [])]) run(values.get(topic));
  }
}

function setLine(line) {
  if (values.get('line') !== line) note('line', line);
}

function heard() {
  heardAt = performance.now();
  retryMs = RETRY_MS.first;
  // Without a snapshot polling goes on: its answer says why there is none.
  if (values.has('snapshot')) clearTimeout(polling);
  setLine('live');
}

/** a `quotes` event, or the answer of live prices */
function takeQuotes(data) {
  for (const quote of data.quotes) values.set(`quote ${quote.symbol}`, quote);
  for (const symbol of data.unavailable) values.set(`quote ${symbol}`, { symbol, unavailable: true });
  note('quotes', null);
}

function close() {
  source?.close();
  source = null;
  clearTimeout(retry);
  clearTimeout(polling);
}

function open() {
  close();
  if (document.visibilityState === 'hidden') return;
  heardAt = performance.now();
  tabs.postMessage('');
  const query = withQuery('/api/index/stream', { symbols: symbols.join(','), last_event_id: tag });
  const mine = new EventSource(query);
  source = mine;
  mine.addEventListener('beat', heard);
  mine.addEventListener('snapshot', (event) => {
    tag = event.lastEventId;
    heard();
    note('snapshot', JSON.parse(event.data));
  });
  mine.addEventListener('quotes', (event) => {
    heard();
    takeQuotes(JSON.parse(event.data));
  });
  // A proxy may hold back what comes, so an open line is not yet a live one.
  mine.addEventListener('open', () => {
    heardAt = performance.now();
  });
  mine.onerror = () => {
    if (mine !== source) return;
    // State 0 connects again by itself; state 2, after an answer other than 200, never.
    if (mine.readyState === EventSource.CLOSED) fallBack();
    else if (values.get('line') === 'live') {
      setLine('connecting');
      clearTimeout(polling);
      polling = setTimeout(poll, LOOK_MS);
    }
  };
}

/** The stream was refused or is dead: polls until another attempt. */
function fallBack() {
  close();
  const wait = retryMs * (0.5 + Math.random() / 2);
  retryMs = Math.min(2 * retryMs, RETRY_MS.most);
  retry = setTimeout(open, wait);
  poll();
}

async function poll() {
  clearTimeout(polling);
  polling = setTimeout(poll, POLL_MS);
  try {
    note('snapshot', await call('/api/index/snapshot'));
    note('trouble', null);
    if (symbols.length) takeQuotes(await call(withQuery('/api/portfolio/live-prices', { symbols: symbols.join(',') })));
    heardAt = performance.now();
    if (!source) setLine('polling');
  } catch (error) {
    if (error.code === 'snapshot_not_ready') {
      // An answer too: the stream brings prices as soon as there are any.
      const whyOf = ({ whyNoPrices }) => whyNoPrices();
      note('trouble', await import('./no-prices.js').then(whyOf, () => ''));
      if (!source) setLine('polling');
    } else if (error.code === 'login_in_front') note('trouble', error.message);
    else if (error.status === 0 || error.status >= 500) setLine('lost');
    else note('trouble', error.message);
  }
}

/** Chooses the symbols whose quotes come beside the snapshot. */
export function follow(wanted) {
  if (wanted.join() === symbols.join()) return;
  symbols = wanted.slice(0, 50);
  for (const topic of [...values.keys()]) if (topic.startsWith('quote')) values.delete(topic);
  if (values.has('line')) open();
}

export function freeze(still) {
  frozen = still;
  note('frozen', still ? serverNow() : null);
  flush();
}

function onTick() {
  if (document.visibilityState === 'hidden') return;
  if (performance.now() - heardAt > SILENT_MS) {
    setLine('lost');
    heardAt = performance.now();
    retryMs = Math.min(RETRY_MS.most, 2_000 + Math.random() * 28_000);
    fallBack();
  }
  values.set('tick', serverNow());
  changed.add('tick');
  flush();
}

/** Begins, once. */
export function start() {
  setLine('connecting');
  open();
  // The stream brings the first snapshot at once, unless something between holds it back.
  polling = setTimeout(() => {
    if (!values.has('snapshot')) poll();
  }, FIRST_MS);
  setInterval(onTick, RENDER_MS);
  document.addEventListener('visibilitychange', () => {
    clearTimeout(closing);
    if (document.visibilityState === 'hidden') closing = setTimeout(close, HIDDEN_MS);
    else if (!source) open();
  });
  addEventListener('pagehide', close);
  addEventListener('pageshow', (event) => {
    if (event.persisted && !source) open();
  });
}

/**
 * Repeats `task` while the tab is looked at; after a failure sooner, with growing pauses. What is being made is asked for
 * again after the time that the task returns.
 */
export function repeat(task, everyMs) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let turn = 0;
  let failures = 0;
  /** @type {number | void} */
  let nextMs;
  const run = async (wanted) => {
    if (turn < 0) return;
    const mine = ++turn;
    clearTimeout(timer);
    if (wanted || failures || (document.visibilityState !== 'hidden' && !frozen)) {
      try {
        nextMs = await task();
        failures = 0;
      } catch {
        failures += 1;
      }
    }
    if (mine !== turn) return;
    const soon = 2_000 * 2 ** Math.min(failures, 4);
    timer = setTimeout(() => run(false), failures ? Math.min(everyMs, soon) : (nextMs ?? everyMs));
  };
  const onVisible = () => {
    if (document.visibilityState !== 'hidden') run(false);
  };
  document.addEventListener('visibilitychange', onVisible);
  run(true);
  return {
    now: () => run(true),
    stop: () => {
      turn = -1;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisible);
    },
  };
}
