// The user's own notes of trades: by days, filtered, with what closed pairs came to.
import { call, withQuery } from '../data/api.js';
import { count, day, direction, price, quantity, rupees, share, signedRupees } from '../data/format.js';
import * as live from '../data/live.js';
import { onAppearance } from '../data/prefs.js';
import { figure, figureList, moved, secret } from '../parts/figures.js';
import { csvButton, table } from '../parts/table.js';
import { button, h, memo, pathOf, put, say, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { journal as t } from '../text/journal.js';

export const title = t.title;

/** The form comes when it is first asked for, and keeps what was typed. @type {typeof import('../parts/journal-form.js') | null} */
let form = null;

const PAGE = 50;
const UNDO_MS = 10_000;
/** A symbol that has a page; others are what the user calls a contract. */
const LISTED = /^(NSE|BSE):[A-Z0-9&._-]{1,32}$/;
const FILTERS = ['symbol', 'strategy', 'tag', 'from', 'to'];

export function show({ main, announce }) {
  /** @type {{ [name: string]: string }} */
  const chosen = {};
  /** @type {any[]} */
  let entries = [];
  /** Deleted here, and at the service once Undo is over. @type {Map<number, () => void>} */
  const going = new Map();
  /** @type {string | null} */
  let cursor = null;
  const place = h('div', null);
  const undo = h('div', { class: 'undo', role: 'status' });
  const sums = h('div', null);
  const status = h('p', { class: 'muted', role: 'status' }, '\u00a0');
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const older = button(t.older, () => more(), { hidden: true });
  const box = h('div', null, skeleton(6));

  const edit = async (entry) => {
    try {
      form ??= await import('../parts/journal-form.js');
    } catch {
      say(problem, text.problem.offline);
      problem.hidden = false;
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
    put(place, form.entryForm(entry ?? null, { done, close }));
    place.querySelector('input')?.focus();
  };
  const add = button(t.add, () => edit(), { class: 'primary' });
  const shown = table({
    name: 'journal',
    caption: t.caption,
    isFixed: true,
    key: (entry) => String(entry.id),
    label: (entry) => `${entry.symbol}, ${day(entry.traded_on)}`,
    columns: [
      { key: 'date', label: t.date, at: 'c', show: (e) => day(e.traded_on), csv: (e) => e.traded_on },
      {
        key: 'symbol',
        label: t.symbol,
        at: 'a',
        show: (e) => ({ text: e.symbol, kind: 'symbol', href: LISTED.test(e.symbol) ? pathOf(e.symbol) : undefined }),
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
      figure('fees', t.fees, (fees) => (fees === null ? { text: '–', why: t.noFees } : secret(rupees)(fees)), {
        rank: 2,
      }),
      { key: 'strategy', label: t.strategy, at: 'd', show: (e) => e.strategy ?? '', csv: (e) => e.strategy },
      {
        key: 'notes',
        label: t.notes,
        wide: true,
        rank: 3,
        csv: (e) => e.notes,
        show: (e) => [...e.tags.flatMap((tag) => [{ text: tag, kind: 'tag' }, ' ']), e.notes ?? ''],
      },
      {
        key: 'tags',
        label: '',
        csv: (e) => e.tags.join(' '),
        control: (current) =>
          h(
            'span',
            { class: 'row-actions' },
            button(t.edit, () => edit(current()), {
              class: 'quiet',
              'aria-label': t.editThis(current().symbol, day(current().traded_on)),
            }),
            button(t.remove, () => remove(current()), {
              class: 'quiet',
              'aria-label': t.removeThis(current().symbol, day(current().traded_on)),
            }),
          ),
      },
    ],
  });

  const inputs = FILTERS.map((name) => {
    const isDate = name === 'from' || name === 'to';
    const input = h('input', {
      id: `by-${name}`,
      type: isDate ? 'date' : 'search',
      autocomplete: 'off',
      spellcheck: 'false',
    });
    input.addEventListener('change', () => {
      const value = input.value.trim();
      chosen[name] = name === 'symbol' ? value.toUpperCase() : value;
      reload();
    });
    return h('div', null, h('label', { for: `by-${name}` }, t.by[name]), input);
  });
  put(
    main,
    h('div', { class: 'title-row' }, h('h1', null, t.title), h('div', { class: 'actions' }, add)),
    place,
    undo,
    h(
      'form',
      { class: 'filters by', onsubmit: (event) => event.preventDefault() },
      inputs,
      csvButton(shown.filed, 'journal.csv'),
    ),
    problem,
    box,
    h('p', null, older),
  );

  /** @type {Answer<'/api/journal/search'> | null} */
  let summed = null;
  const draw = () => {
    const listed = entries.filter(({ id }) => !going.has(id));
    shown.update(listed);
    const isFiltered = Object.values(chosen).some(Boolean);
    // Sums and list come at once: one after the other would push the other down.
    memo(box, [listed.length > 0, isFiltered], () =>
      put(box, sums, status, listed.length ? shown.node : emptyJournal(isFiltered)),
    );
    older.hidden = cursor === null;
  };
  const drawSums = ({ count: all, summary: sum }) => {
    say(status, t.count(count(all)));
    sums.hidden = status.hidden = !all && !Object.values(chosen).some(Boolean);
    const figures = [
      [t.closed, count(sum.closed_pairs), null, t.closedWhy],
      [t.winRate, share(sum.win_rate), null, t.winRateWhy],
      [t.realised, moved(sum.realised, secret(signedRupees)).text, direction(sum.realised), t.realisedWhy],
      [t.fees, secret(rupees)(sum.fees), null, t.feesWhy],
    ];
    put(sums, figureList(figures));
  };
  const fetched = live.repeat(async () => {
    try {
      const page = await call(withQuery('/api/journal/search', { ...chosen, limit: PAGE }));
      ({ entries, next_cursor: cursor } = page);
      problem.hidden = true;
      drawSums((summed = page));
      draw();
    } catch (failed) {
      say(problem, failed.message);
      problem.hidden = false;
      if (!summed) memo(box, null, () => put(box));
      throw failed;
    }
  }, 600_000);
  const left = form?.unsaved();
  if (left) edit(left.entry);
  const reload = () => fetched.now();
  const more = async () => {
    const page = await call(withQuery('/api/journal/search', { ...chosen, limit: PAGE, cursor }));
    entries = [...entries, ...page.entries];
    cursor = page.next_cursor;
    draw();
  };

  const remove = (entry) => {
    const finish = async () => {
      clearTimeout(timer);
      line.remove();
      if (!going.has(entry.id)) return;
      await call(`/api/journal/${entry.id}`, { method: 'DELETE' }).catch((failed) => {
        if (failed.code !== 'entry_not_found') {
          say(problem, failed.message);
          problem.hidden = false;
        }
      });
      going.delete(entry.id);
      reload();
    };
    const timer = setTimeout(finish, UNDO_MS);
    const back = button(
      t.undo,
      () => {
        clearTimeout(timer);
        going.delete(entry.id);
        line.remove();
        draw();
        announce(t.kept);
        add.focus();
      },
      { class: 'link' },
    );
    const line = h('p', null, t.removed(entry.symbol, day(entry.traded_on)), ' ', back);
    going.set(entry.id, finish);
    undo.append(line);
    draw();
    back.focus();
  };
  const end = onAppearance(() => {
    draw();
    if (summed) drawSums(summed);
  });
  return () => {
    fetched.stop();
    end();
    for (const finish of going.values()) finish();
  };
}

const emptyJournal = (isFiltered) => h('p', { class: 'empty' }, isFiltered ? t.noneMatch : t.none);
