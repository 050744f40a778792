// The user's own notes of trades: by days, filtered, with what closed pairs came to.
import { call, withQuery } from '../api.js';
import { figure, figureList, moved, secret } from '../figures.js';
import { count, day, direction, price, quantity, rupees, share, signedRupees } from '../format.js';
import { entryForm, unsaved } from '../journal-form.js';
import * as live from '../live.js';
import { onAppearance } from '../prefs.js';
import { csvButton, table } from '../table.js';
import { text } from '../text.js';
import { button, h, put, say, skeleton } from '../view.js';

const t = text.journal;
export const title = t.title;

const PAGE = 50;
const UNDO_MS = 10_000;
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
  const status = h('p', { class: 'muted', role: 'status' });
  const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
  const older = button(t.older, () => more(), { hidden: true });
  const box = h('div', null, skeleton(6));

  const edit = (entry) => {
    put(place, entryForm(entry ?? null, {
      done: () => { place.replaceChildren(); add.focus(); reload(); },
      close: () => { place.replaceChildren(); add.focus(); },
    }));
    place.querySelector('input')?.focus();
  };
  const add = button(t.add, () => edit(), { class: 'primary' });
  const shown = table({
    name: 'journal', caption: t.caption, isFixed: true, key: (entry) => String(entry.id),
    columns: [
      { key: 'date', label: t.date, show: (e) => day(e.traded_on), csv: (e) => e.traded_on },
      { key: 'symbol', label: t.symbol, show: (e) => ({ text: e.symbol, kind: 'symbol' }), csv: (e) => e.symbol },
      { key: 'side', label: t.side, show: (e) => t.sides[e.side] ?? e.side, csv: (e) => e.side },
      figure('quantity', t.quantity, secret(quantity)), figure('price', t.price, secret(price)),
      figure('fees', t.fees, (fees) => ({ text: secret(rupees)(fees), title: fees === null ? t.noFees : undefined })),
      { key: 'strategy', label: t.strategy, show: (e) => e.strategy ?? '', csv: (e) => e.strategy },
      {
        key: 'notes', label: t.notes, wide: true, csv: (e) => e.notes,
        show: (e) => [...e.tags.flatMap((tag) => [{ text: tag, kind: 'tag' }, ' ']), e.notes ?? ''],
      },
      { key: 'tags', label: '', csv: (e) => e.tags.join(' '), control: (current) => h('span', { class: 'row-actions' },
        button(t.edit, () => edit(current()), { class: 'quiet', 'aria-label': t.editThis(current().symbol, day(current().traded_on)) }),
        button(t.remove, () => remove(current()), { class: 'quiet', 'aria-label': t.removeThis(current().symbol, day(current().traded_on)) })) },
    ],
  });

  const inputs = FILTERS.map((name) => {
    const isDate = name === 'from' || name === 'to';
    const input = h('input', { id: `by-${name}`, type: isDate ? 'date' : 'search', autocomplete: 'off', spellcheck: 'false' });
    input.addEventListener('change', () => {
      const value = input.value.trim();
      chosen[name] = name === 'symbol' ? value.toUpperCase() : value;
      reload();
    });
    return h('div', null, h('label', { for: `by-${name}` }, t.by[name]), input);
  });
  put(main,
    h('div', { class: 'title-row' }, h('h1', null, t.title), h('div', { class: 'actions' }, add)),
    place, undo,
    h('form', { class: 'filters', onsubmit: (event) => event.preventDefault() }, inputs, csvButton(shown.csv, 'journal.csv')),
    sums, status, problem, box, h('p', null, older));

  const draw = () => {
    const listed = entries.filter(({ id }) => !going.has(id));
    shown.update(listed);
    put(box, listed.length ? shown.node : emptyJournal(Object.values(chosen).some(Boolean)));
    older.hidden = cursor === null;
  };
  const drawSums = ({ count: all, summary: sum }) => {
    say(status, t.count(count(all)));
    sums.hidden = status.hidden = !all && !Object.values(chosen).some(Boolean);
    const figures = [
      [t.closed, count(sum.closed_pairs), null, t.closedWhy], [t.winRate, share(sum.win_rate), null, t.winRateWhy],
      [t.realised, moved(sum.realised, secret(signedRupees)).text, direction(sum.realised), t.realisedWhy],
      [t.fees, secret(rupees)(sum.fees), null, t.feesWhy],
    ];
    put(sums, figureList(figures));
  };
  /** @type {Answer<'/api/journal/search'> | null} */
  let summed = null;
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
      throw failed;
    }
  }, 600_000);
  const left = unsaved();
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
        if (failed.code !== 'entry_not_found') { say(problem, failed.message); problem.hidden = false; }
      });
      going.delete(entry.id);
      reload();
    };
    const timer = setTimeout(finish, UNDO_MS);
    const back = button(t.undo, () => {
      clearTimeout(timer);
      going.delete(entry.id);
      line.remove();
      draw();
      announce(t.kept);
      add.focus();
    }, { class: 'link' });
    const line = h('p', null, t.removed(entry.symbol, day(entry.traded_on)), ' ', back);
    going.set(entry.id, finish);
    undo.append(line);
    draw();
    back.focus();
  };
  const end = onAppearance(() => { draw(); if (summed) drawSums(summed); });
  return () => {
    fetched.stop();
    end();
    for (const finish of going.values()) finish();
  };
}

const emptyJournal = (isFiltered) => h('p', { class: 'empty' }, isFiltered ? t.noneMatch : t.none);
