// The signals of the last published date, and how all earlier ones did.
import { call, withQuery } from '../data/api.js';
import { count, day, minute, share } from '../data/format.js';
import * as live from '../data/live.js';
import { figure, figureList, simulated } from '../parts/figures.js';
import { signalTable, signalWords, simulatedMark, sorted } from '../parts/signal-table.js';
import { csvButton, table } from '../parts/table.js';
import { h, memo, put, say, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { signals as t } from '../text/signals.js';

export const title = t.title;

export function show({ main }) {
  const chosen = { direction: '', symbol: '' };
  const about = h('p', { class: 'lead about' }, '\u00a0');
  const words = h('div', { class: 'words' });
  const direction = h(
    'select',
    { id: 'direction' },
    ['', 'bullish', 'bearish'].map((name) => h('option', { value: name }, name ? text.direction[name] : t.both)),
  );
  const symbol = h('input', {
    id: 'symbol',
    type: 'search',
    placeholder: 'NSE:INFY',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const pattern = h('select', { id: 'pattern' }, h('option', { value: '' }, t.allPatterns));
  const counted = h('p', { class: 'muted', role: 'status' }, '\u00a0');
  const place = h('div', null, skeleton(24));
  const grouped = signalTable(t.caption, [], { name: 'grouped', lead: counted });
  const below = signalTable(t.restCaption, [], { name: 'below' });
  const restWords = h('summary', null);
  const rest = h('details', { class: 'below' }, restWords, below.node);
  const running = signalTable(t.provisionalCaption, [], { name: 'provisional' });
  const provisional = h(
    'section',
    { class: 'provisional', hidden: true },
    h('h2', null, t.provisional),
    h('p', { class: 'muted' }),
    running.node,
  );
  // It comes after the list, which it would otherwise be pushed down by.
  const record = h('section', { 'aria-labelledby': 'record', hidden: true }, h('h2', { id: 'record' }, t.record));

  put(
    main,
    h('h1', null, t.title),
    about,
    h(
      'form',
      {
        class: 'filters',
        onsubmit: (event) => {
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
      csvButton(() => signalTable(t.caption, listed, { name: 'file' }).filed(), 'signals.csv'),
    ),
    place,
    provisional,
    words,
    record,
  );

  /** @type {any[]} */
  let listed = [];
  /** @type {(() => void) | undefined} */
  let endFit;
  const draw = () => {
    const rows = listed.filter((row) => !pattern.value || row.pattern === pattern.value);
    const [done, open] = [rows.filter((row) => !row.provisional), rows.filter((row) => row.provisional)];
    const { grouped: shares, rest: others } = sorted(done);
    say(counted, done.length ? t.counted(shares.length, done.length) : t.noneMatch);
    if (!grouped.node.isConnected) put(place, grouped.node, rest);
    grouped.node.querySelector('table').hidden = shares.length === 0;
    grouped.update(shares);
    rest.hidden = others.length === 0;
    say(restWords, t.rest(others.length));
    below.update(others);
    provisional.hidden = open.length === 0;
    running.update(open);
  };
  const fetched = live.repeat(async () => {
    try {
      const list = await call(withQuery('/api/signals', chosen));
      listed = list.signals;
      memo(about, [list.as_of, listed.length], () =>
        put(
          about,
          t.of(day(list.as_of), list.horizon_sessions),
          ' ',
          h('a', { href: '#record' }, t.toRecord),
          ' ',
          simulatedMark(listed),
        ),
      );
      memo(words, [list.meaning, list.disclaimer], () => put(words, signalWords(list)));
      if (list.provisional_at) say(provisional.children[1], t.provisionalOf(minute(list.provisional_at)));
      if (!chosen.symbol) fillPatterns(pattern, listed);
      draw();
    } catch (problem) {
      if (problem.code === 'signals_not_ready') {
        say(about, t.none);
        put(place);
      } else if (problem.status === 400) {
        listed = [];
        draw();
        say(counted, problem.message);
      } else {
        if (place.querySelector('.skeleton')) put(place, h('p', { class: 'problem', role: 'alert' }, problem.message));
        throw problem;
      }
    } finally {
      record.hidden = false;
    }
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
