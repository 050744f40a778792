// The signals of the last published date, and how all earlier ones did.
import { call, withQuery } from '../data/api.js';
import { count, day } from '../data/format.js';
import * as live from '../data/live.js';
import { learnNames } from '../data/names.js';
import { share } from '../data/ratio-format.js';
import { awaited, soonMs } from '../parts/awaited.js';
import { figureList } from '../parts/figure-list.js';
import { figure, simulated } from '../parts/figures.js';
import { signalTable, signalWords, simulatedMark, sorted } from '../parts/signal-table.js';
import { csvButton, table } from '../parts/table.js';
import { h, memo, put, say, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { signals as t } from '../text/signals.js';

export const title = t.title;

/** @typedef {Answer<'/api/signals'>} Listed */
/** @typedef {ReturnType<typeof lay>} Nodes */

/** @param {Context} context */
export function show({ main }) {
  const chosen = { direction: '', symbol: '' };
  /** @type {any[]} */
  let listed = [];
  let isAwaited = false;
  const nodes = lay(
    main,
    () => listed,
    () => reload(),
  );
  const { direction, symbol, pattern, record } = nodes;
  /** @type {(() => void) | undefined} */
  let endFit;
  const draw = () => drawList(nodes, listed);
  const fetched = live.repeat(async () => {
    try {
      const list = await call(withQuery('/api/signals', chosen));
      await learnNames(list.signals.map(({ symbol }) => symbol));
      listed = list.signals;
      nodes.about.classList.remove('waiting');
      // Before the first list nothing was published: the record comes with it, and is read again then.
      const isFirst = isAwaited;
      isAwaited = ['loading', 'unreachable'].includes(list.state);
      if (isFirst && !isAwaited) recorded.now();
      if (drawAwaited(nodes, list)) return soonMs(list);
      drawWords(nodes, list);
      if (!chosen.symbol) fillPatterns(pattern, listed);
      draw();
    } catch (problem) {
      if (problem.status === 400) {
        listed = [];
        draw();
      }
      if (!drawProblem(nodes, problem)) throw problem;
    } finally {
      record.hidden = isAwaited;
    }
    return undefined;
  }, 60_000);
  const recorded = live.repeat(async () => {
    const answer = await call('/api/signals/record');
    // Before the first signal is judged there is no plot to load.
    const plots = answer.judged > 0 ? await import('../charts/reliability.js') : null;
    memo(record, answer, () => {
      put(record, h('h2', { id: 'record' }, t.record), recordOf(answer, plots));
      endFit?.();
      endFit = plots?.follow(record, answer.reliability);
    });
  }, 300_000);

  const reload = () => {
    chosen.symbol = symbol.value.trim().toUpperCase();
    if (chosen.symbol && !chosen.symbol.includes(':')) chosen.symbol = `NSE:${chosen.symbol}`;
    chosen.direction = direction.value;
    fetched.now();
  };
  for (const field of [direction, symbol]) field.addEventListener('change', reload);
  pattern.addEventListener('change', draw);
  return () => {
    fetched.stop();
    recorded.stop();
    endFit?.();
  };
}

/** Lays out the page. @param {HTMLElement} main @param {() => any[]} listed @param {() => void} reload */
function lay(main, listed, reload) {
  const counted = h('p', { class: 'muted', role: 'status' }, '\u00a0');
  const below = signalTable(t.restCaption, [], { name: 'below' });
  const restWords = h('summary', null);
  const nodes = {
    about: h('p', { class: 'lead about waiting' }, '\u00a0'),
    words: h('div', { class: 'words' }),
    direction: h(
      'select',
      { id: 'direction' },
      ['', 'bullish', 'bearish'].map((name) => h('option', { value: name }, name ? text.direction[name] : t.both)),
    ),
    symbol: h('input', {
      id: 'symbol',
      type: 'search',
      placeholder: 'INFY',
      autocomplete: 'off',
      spellcheck: 'false',
    }),
    pattern: h('select', { id: 'pattern' }, h('option', { value: '' }, t.allPatterns)),
    counted,
    place: h('div', null, skeleton(24)),
    grouped: signalTable(t.caption, [], { name: 'grouped', lead: counted }),
    below,
    restWords,
    rest: h('details', { class: 'below' }, restWords, below.node),
    // It comes after the list, which it would otherwise be pushed down by.
    record: h('section', { 'aria-labelledby': 'record', hidden: true }, h('h2', { id: 'record' }, t.record), skeleton(8)),
  };
  put(
    main,
    h('h1', null, t.title),
    nodes.about,
    filtersOf(nodes, listed, reload),
    nodes.place,
    nodes.words,
    nodes.record,
  );
  return nodes;
}

/** @param {{ symbol: Node, direction: Node, pattern: Node }} nodes @param {() => any[]} listed @param {() => void} reload */
const filtersOf = ({ symbol, direction, pattern }, listed, reload) =>
  h(
    'form',
    {
      class: 'filters',
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        reload();
      },
    },
    h('label', { for: 'symbol' }, t.symbol),
    symbol,
    h('label', { for: 'direction', class: 'unseen' }, t.direction),
    direction,
    h('label', { for: 'pattern', class: 'unseen' }, t.pattern),
    pattern,
    csvButton(() => signalTable(t.caption, listed(), { name: 'file' }).filed(), 'signals.csv'),
  );

/** The signals of the chosen pattern: a share's each, and the rest below. @param {Nodes} nodes @param {any[]} listed */
function drawList(nodes, listed) {
  const { pattern, grouped, place, rest } = nodes;
  const rows = listed.filter((row) => !pattern.value || row.pattern === pattern.value);
  const { grouped: shares, rest: others } = sorted(rows);
  say(nodes.counted, rows.length ? t.counted(shares.length, rows.length) : t.noneMatch);
  if (!grouped.node.isConnected) put(place, grouped.node, rest);
  grouped.node.querySelector('table').hidden = shares.length === 0;
  grouped.update(shares);
  rest.hidden = others.length === 0;
  say(nodes.restWords, t.rest(others.length));
  nodes.below.update(others);
}

/** What the list is of, and what it means. @param {Nodes} nodes @param {Listed} list */
function drawWords({ about, words }, list) {
  memo(about, [list.as_of, list.signals.length], () =>
    put(
      about,
      t.of(day(list.as_of ?? ''), list.horizon_sessions),
      ' ',
      h('a', { href: '#record' }, t.toRecord),
      ' ',
      simulatedMark(list.signals),
    ),
  );
  memo(words, [list.meaning, list.disclaimer], () => put(words, signalWords(list)));
}

/** Says where a list is that is not there. @param {Nodes} nodes @param {Listed} list */
function drawAwaited({ place, words }, list) {
  const waits = awaited(list, 'signals', t.none);
  if (!waits) return false;
  memo(place, [list.state, list.detail, list.progress], () => put(place, waits));
  memo(words, [list.meaning, list.disclaimer], () => put(words, signalWords(list)));
  return true;
}

/** Says why there is no list; whether that is all there is to it. @param {Nodes} nodes @param {any} problem */
function drawProblem({ place, counted }, problem) {
  if (problem.status === 400) {
    say(counted, problem.message);
    return true;
  }
  if (place.querySelector('.skeleton')) put(place, h('p', { class: 'problem', role: 'alert' }, problem.message));
  return false;
}

function fillPatterns(select, listed) {
  const before = select.value;
  const names = [...new Set(listed.map((row) => row.pattern))].sort();
  if (names.length + 1 === select.options.length) return;
  put(
    select,
    h('option', { value: '' }, t.allPatterns),
    names.map((name) => h('option', { value: name }, text.pattern(name))),
  );
  select.value = names.includes(before) ? before : '';
}

function recordOf(record, plots) {
  const figures = [
    [t.published, count(record.published)],
    [t.judged, count(record.judged)],
    [t.pending, count(record.pending)],
    [t.hitRate, share(record.hit_rate)],
    [t.meanConfidence, share(record.mean_confidence)],
  ];
  const since = record.since ? t.since(day(record.since), count(record.dates_published)) : '';
  /** @type {Node[]} */
  const parts = [h('p', { class: 'muted' }, since, simulated(record.simulated)), figureList(figures)];
  if (record.judged === 0) parts.push(h('p', { class: 'empty' }, t.noneJudged(record.horizon_sessions)));
  else parts.push(scores(record), plots?.place(), bins(record.reliability));
  return h('div', null, parts);
}

function scores(record) {
  const { brier } = record;
  if (brier.confidence === null) return h('p', { class: 'muted' }, t.tooFewDates(record.score_dates_min, record.dates));
  const four = (value) => (value === null ? '–' : value.toFixed(4));
  const verdicts = [brier.from_coin, brier.from_base_rate].filter(Boolean).map(({ verdict }) => t.verdict(verdict));
  return h(
    'div',
    null,
    h('h3', null, t.brier),
    figureList([
      [t.ours, four(brier.confidence)],
      [t.coin, four(brier.coin)],
      [t.baseRate, four(brier.base_rate)],
    ]),
    verdicts.map((words) => h('p', null, words)),
  );
}

function bins(list) {
  const built = table({
    name: 'bins',
    caption: t.binsCaption,
    isFixed: true,
    plain: true,
    key: (bin) => String(bin.up_to),
    columns: [
      { key: 'range', label: t.said, show: (bin) => t.range(share(bin.over), share(bin.up_to)) },
      figure('mean_confidence', t.meanConfidence, share),
      figure('hit_rate', t.happened, share),
      figure('judged', t.judged, count),
      { key: 'note', rank: 2, label: t.note, show: (bin) => (bin.judged < 30 ? t.tooFew : '') },
    ],
  });
  built.update(list.filter((bin) => bin.judged > 0));
  return built.node;
}
