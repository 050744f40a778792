// The user's own notes of trades: by days, filtered, with what closed pairs came to.
import { call, withQuery } from '../data/api.js';
import { take } from '../data/begun-entry.js';
import { called, count, day, direction, price, quantity, rupees, signedRupees } from '../data/format.js';
import * as live from '../data/live.js';
import { onAppearance } from '../data/prefs.js';
import { share } from '../data/ratio-format.js';
import { figureList } from '../parts/figure-list.js';
import { figure, moved, secret } from '../parts/figures.js';
import { csvButton, table } from '../parts/table.js';
import { button, h, memo, pathOf, put, say, skeleton, symbolBits } from '../parts/view.js';
import { text } from '../text.js';
import { journal as t } from '../text/journal.js';

export const title = t.title;

/** The form comes when it is first asked for, and keeps what was typed. @type {typeof import('../parts/journal-form.js') | null} */
let form = null;

const PAGE = 50;
const UNDO_MS = 10_000;
/** A symbol that has a page; others are what the user calls a contract. */
const LISTED = /^(NSE|BSE):[A-Z0-9&._-]{1,32}$/;
const FILTERS = /** @type {const} */ (['symbol', 'strategy', 'tag', 'from', 'to']);

/** @typedef {Answer<'/api/journal/search'>} Found */
/** @typedef {Found['entries'][number]} Entry */
/** @typedef {ReturnType<typeof lay>} Nodes */

/**
 * @typedef {object} State
 * @property {{ [filter: string]: string }} chosen
 * @property {Entry[]} entries
 * @property {string | null} cursor where older ones begin
 * @property {Found | null} summed the answer whose sums are shown
 * @property {Map<number, () => void>} going deleted here, and at the service once Undo is over
 */

/** @param {Context} context */
export function show({ main, announce }) {
  /** @type {State} */
  const state = { chosen: {}, entries: [], cursor: null, summed: null, going: new Map() };
  const draw = () => drawEntries(nodes, state);
  const reload = () => fetched.now();
  const nodes = lay(main, {
    edit: (entry) => edit(nodes, entry, reload),
    remove: (entry) => remove(nodes, state, entry, { draw, reload, announce }),
    filter: (name, value) => {
      state.chosen[name] = name === 'symbol' ? value.toUpperCase() : value;
      reload();
    },
    older: async () => {
      const page = await call(searchOf(state, { cursor: state.cursor }));
      state.entries = [...state.entries, ...page.entries];
      state.cursor = page.next_cursor;
      draw();
    },
  });
  const fetched = live.repeat(async () => {
    try {
      const page = await call(searchOf(state, {}));
      ({ entries: state.entries, next_cursor: state.cursor } = page);
      state.summed = page;
      nodes.problem.hidden = true;
      drawSums(nodes, state, page);
      draw();
    } catch (failed) {
      tell(nodes, failed.message);
      if (!state.summed) memo(nodes.box, null, () => put(nodes.box));
      throw failed;
    }
  }, 600_000);
  const left = form?.unsaved();
  const begun = take();
  if (left) edit(nodes, left.entry, reload);
  else if (begun) edit(nodes, undefined, reload, begun);
  const end = onAppearance(() => {
    draw();
    if (state.summed) drawSums(nodes, state, state.summed);
  });
  return () => {
    fetched.stop();
    end();
    for (const finish of state.going.values()) finish();
  };
}

/** @param {State} state @param {{ cursor?: string | null }} more */
const searchOf = ({ chosen }, more) => withQuery('/api/journal/search', { ...chosen, limit: PAGE, ...more });

/** @param {Nodes} nodes @param {string} words */
function tell({ problem }, words) {
  say(problem, words);
  problem.hidden = false;
}

/**
 * Lays out the page.
 * @param {HTMLElement} main
 * @param {{
 *   edit: (entry?: Entry) => void,
 *   remove: (entry: Entry) => void,
 *   filter: (name: string, value: string) => void,
 *   older: () => void,
 * }} act
 */
function lay(main, act) {
  const nodes = {
    place: h('div', null),
    undo: h('div', { class: 'undo', role: 'status' }),
    sums: h('div', null),
    status: h('p', { class: 'muted', role: 'status' }, '\u00a0'),
    problem: h('p', { class: 'problem', role: 'alert', hidden: true }),
    older: button(t.older, () => act.older(), { hidden: true }),
    box: h('div', null, skeleton(6)),
    add: button(t.add, () => act.edit(), { class: 'primary' }),
    shown: tableOf(act),
  };
  put(
    main,
    h('div', { class: 'title-row' }, h('h1', null, t.title), h('div', { class: 'actions' }, nodes.add)),
    nodes.place,
    nodes.undo,
    h(
      'form',
      { class: 'filters by', onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
      FILTERS.map((name) => filterOf(name, act.filter)),
      csvButton(nodes.shown.filed, 'journal.csv'),
    ),
    nodes.problem,
    nodes.box,
    h('p', null, nodes.older),
  );
  return nodes;
}

/** @param {typeof FILTERS[number]} name @param {(name: string, value: string) => void} filter */
function filterOf(name, filter) {
  const input = h('input', {
    id: `by-${name}`,
    type: name === 'from' || name === 'to' ? 'date' : 'search',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  input.addEventListener('change', () => filter(name, input.value.trim()));
  return h('div', null, h('label', { for: `by-${name}` }, t.by[name]), input);
}

/** @param {{ edit: (entry: Entry) => void, remove: (entry: Entry) => void }} act */
function tableOf(act) {
  /** @type {(entry: Entry) => [string, string]} */
  const named = (entry) => [called(entry.symbol), day(entry.traded_on)];
  const actions = (/** @type {() => Entry} */ current) =>
    h(
      'span',
      { class: 'row-actions' },
      button(t.edit, () => act.edit(current()), { class: 'quiet', 'aria-label': t.editThis(...named(current())) }),
      button(t.remove, () => act.remove(current()), {
        class: 'quiet',
        'aria-label': t.removeThis(...named(current())),
      }),
    );
  const fees = (/** @type {number | null} */ paid) =>
    paid === null ? { text: '–', why: t.noFees } : secret(rupees)(paid);
  /** @type {Shape<Entry>} */
  const shape = {
    name: 'journal',
    caption: t.caption,
    isFixed: true,
    key: (entry) => String(entry.id),
    label: (entry) => named(entry).join(', '),
    columns: [
      { key: 'date', label: t.date, at: 'c', show: (e) => day(e.traded_on), csv: (e) => e.traded_on },
      {
        key: 'symbol',
        label: t.symbol,
        at: 'a',
        show: (e) => symbolBits(e.symbol, LISTED.test(e.symbol) ? pathOf(e.symbol) : undefined),
        csv: (e) => e.symbol,
      },
      {
        key: 'what',
        label: t.what,
        phone: true,
        at: 'b',
        show: (e) => t.whatOf(t.sides[e.side] ?? e.side, secret(quantity)(e.quantity), secret(price)(e.price)),
      },
      { key: 'side', label: t.side, at: 'told', show: (e) => t.sides[e.side] ?? e.side, csv: (e) => e.side },
      figure('quantity', t.quantity, secret(quantity), { at: 'told' }),
      figure('price', t.price, secret(price), { at: 'told' }),
      figure('fees', t.fees, fees, { rank: 2 }),
      { key: 'strategy', label: t.strategy, at: 'd', show: (e) => e.strategy ?? '', csv: (e) => e.strategy },
      {
        key: 'notes',
        label: t.notes,
        wide: true,
        rank: 3,
        csv: (e) => e.notes,
        show: (e) => [...e.tags.flatMap((tag) => [{ text: tag, kind: 'tag' }, ' ']), e.notes ?? ''],
      },
      { key: 'tags', label: '', csv: (e) => e.tags.join(' '), control: actions },
    ],
  };
  return table(shape);
}

/** @param {Nodes} nodes @param {State} state */
function drawEntries({ shown, box, sums, status, older }, { entries, going, chosen, cursor }) {
  const listed = entries.filter(({ id }) => !going.has(id));
  shown.update(listed);
  const isFiltered = Object.values(chosen).some(Boolean);
  // Sums and list come at once: one after the other would push the other down.
  memo(box, [listed.length > 0, isFiltered], () =>
    put(box, sums, status, listed.length ? shown.node : emptyJournal(isFiltered)),
  );
  older.hidden = cursor === null;
}

/** @param {Nodes} nodes @param {State} state @param {Found} found */
function drawSums({ status, sums }, { chosen }, { count: all, summary: sum }) {
  say(status, t.count(count(all)));
  sums.hidden = status.hidden = !all && !Object.values(chosen).some(Boolean);
  const figures = [
    [t.closed, count(sum.closed_pairs), null, t.closedWhy],
    [t.winRate, share(sum.win_rate), null, t.winRateWhy],
    [t.realised, moved(sum.realised, secret(signedRupees)).text, direction(sum.realised), t.realisedWhy],
    [t.fees, secret(rupees)(sum.fees), null, t.feesWhy],
  ];
  put(sums, figureList(figures));
}

/**
 * Opens the form: empty, with an entry, or with what was begun elsewhere.
 * @param {Nodes} nodes
 * @param {Entry | undefined} entry
 * @param {() => void} reload
 * @param {{ [name: string]: string }} [begun]
 */
async function edit(nodes, entry, reload, begun) {
  const { place, add } = nodes;
  try {
    form ??= await import('../parts/journal-form.js');
  } catch {
    tell(nodes, text.problem.offline);
    return;
  }
  const close = () => {
    place.replaceChildren();
    add.focus();
  };
  const done = () => {
    close();
    reload();
  };
  put(place, form.entryForm(entry ?? null, { done, close }, begun));
  place.querySelector('input')?.focus();
}

/**
 * Takes an entry away, at the service once Undo is over.
 * @param {Nodes} nodes
 * @param {State} state
 * @param {Entry} entry
 * @param {{ draw: () => void, reload: () => void, announce: (words: string) => void }} then
 */
function remove(nodes, { going }, entry, { draw, reload, announce }) {
  const finish = async () => {
    clearTimeout(timer);
    line.remove();
    if (!going.has(entry.id)) return;
    await call(`/api/journal/${entry.id}`, { method: 'DELETE' }).catch((failed) => {
      if (failed.code !== 'entry_not_found') tell(nodes, failed.message);
    });
    going.delete(entry.id);
    reload();
  };
  const timer = setTimeout(finish, UNDO_MS);
  const takeBack = () => {
    clearTimeout(timer);
    going.delete(entry.id);
    line.remove();
    draw();
    announce(t.kept);
    nodes.add.focus();
  };
  const back = button(t.undo, takeBack, { class: 'link' });
  const line = h('p', null, t.removed(called(entry.symbol), day(entry.traded_on)), ' ', back);
  going.set(entry.id, finish);
  nodes.undo.append(line);
  draw();
  back.focus();
}

/** @param {boolean} isFiltered */
const emptyJournal = (isFiltered) => h('p', { class: 'empty' }, isFiltered ? t.noneMatch : t.none);
