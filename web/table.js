// One table for all pages: sorting, rows that are patched and never rebuilt, CSV of what is shown.
import { csvCell } from './format.js';
import { keep, kept } from './prefs.js';
import { text } from './text.js';
import { attr, button, flash, h, keyed, pieces, put } from './view.js';

// Few columns become cards later than many.
const slim = matchMedia('(max-width: 63rem)');
(slim.onchange = () => document.documentElement.classList.toggle('slim', slim.matches))();

/** @template Row @param {Shape<Row>} shape */
export function table(shape) {
  /** @type {any[]} */
  const columns = shape.columns.map((column) => {
    const { of } = column;
    const read = of && ((row) => row[of]);
    const whole = read ? { key: of, sort: read, csv: read, ...column } : column;
    return shape.isFixed ? { ...whole, sort: undefined } : whole;
  });
  /** @type {Map<string, { node: Element, handle: any }>} */
  const rows = new Map();
  /** @type {Set<string>} */
  const open = new Set();
  /** @type {Row[]} */
  let shown = [];
  /** @type {Row[]} */
  let given = [];
  const remembered = kept(`sort ${shape.name}`) ?? shape.sorted ?? '';
  let [by, down] = [remembered.replace(/^-/, ''), remembered.startsWith('-')];

  const headings = columns.map((column) => {
    const heading = h('th', { role: 'columnheader', scope: 'col', class: column.number ? 'number' : null, title: column.hint });
    if (!column.sort) {
      heading.append(column.label === '' ? h('span', { class: 'unseen' }, text.table.actions) : column.label);
      if (column.label === '') heading.className = 'acts';
      return heading;
    }
    heading.append(button(column.label, () => {
      // Figures are wanted largest first, names from A.
      down = by === column.key ? !down : column.number === true;
      by = column.key;
      keep(`sort ${shape.name}`, `${down ? '-' : ''}${by}`);
      draw();
    }));
    return heading;
  });
  const body = h('tbody', { role: 'rowgroup' });
  const node = h('table', { role: 'table', class: columns.length > 7 ? 'broad' : null },
    h('caption', { class: 'unseen' }, shape.caption),
    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, headings)),
    body);

  function sorted(list) {
    const column = columns.find(({ key }) => key === by);
    if (!column?.sort) return list;
    const read = column.sort;
    const sign = down ? -1 : 1;
    return [...list].sort((one, other) => {
      const [a, b] = [read(one), read(other)];
      // What is not known stands at the end, whichever way is sorted.
      if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
      if (b === null || b === undefined) return -1;
      return sign * (typeof a === 'string' ? a.localeCompare(String(b), 'en-IN') : a - Number(b));
    });
  }

  function make(first) {
    let row = first;
    /** @type {(Node | null)[]} */
    const controls = [];
    const cells = columns.map((column) => {
      const cell = h('td', { role: 'cell', 'data-label': column.label, class: [column.number && 'number', column.wide && 'wide', column.label === '' && 'acts'].filter(Boolean).join(' ') || null });
      const control = column.control?.(() => row, (opener) => toggle(row, opener));
      if (control) cell.append(control);
      controls.push(control ?? null);
      return cell;
    });
    const node = h('tr', { role: 'row' }, cells);
    /** @type {string[]} */
    const signs = [];
    return { node, handle: { set: (next) => { row = next; patch(node, cells, controls, signs, next); } } };
  }

  function patch(node, cells, controls, signs, row) {
    attr(node, 'class', shape.kind?.(row) || null);
    columns.forEach((column, at) => {
      if (!column.show) return;
      const bits = [column.show(row)].flat();
      const sign = JSON.stringify(bits);
      if (signs[at] === sign) return;
      const isFirst = signs[at] === undefined;
      signs[at] = sign;
      if (controls[at]) while (controls[at]?.nextSibling) controls[at]?.nextSibling?.remove();
      else cells[at].replaceChildren();
      cells[at].append(...pieces(bits));
      if (!isFirst && column.live) flash(cells[at]);
    });
  }

  function draw() {
    columns.forEach((column, at) => {
      if (column.sort) attr(headings[at], 'aria-sort', column.key === by ? (down ? 'descending' : 'ascending') : 'none');
    });
    shown = sorted(given);
    body.classList.toggle('many', shown.length > 200);
    const items = shown.flatMap((row) => {
      const key = shape.key(row);
      return open.has(key) ? [{ key, row }, { key: `${key} details`, row }] : [{ key, row }];
    });
    keyed(body, rows, items, ({ key }) => key, (item) => (item.key === shape.key(item.row) ? make(item.row) : makeDetails()),
      (handle, { row }) => handle.set(row));
  }

  function makeDetails() {
    const cell = h('td', { role: 'cell', colspan: columns.length });
    let sign = '';
    const set = (row) => {
      if (sign === JSON.stringify(row)) return;
      sign = JSON.stringify(row);
      put(cell, shape.details?.(row) ?? null);
    };
    return { node: h('tr', { role: 'row', class: 'details' }, cell), handle: { set } };
  }

  /** Opens or closes what belongs to a row. */
  function toggle(row, opener) {
    const key = shape.key(row);
    if (!open.delete(key)) open.add(key);
    attr(opener, 'aria-expanded', String(open.has(key)));
    draw();
  }

  return {
    node,
    update(list) {
      given = list;
      draw();
    },
    shown: () => shown,
    /** The table as it stands, for a spreadsheet: exact figures, not their display. */
    csv() {
      const listed = columns.filter(({ csv }) => csv);
      const lines = [listed.map(({ label, key }) => csvCell(label || key))];
      for (const row of shown) lines.push(listed.map(({ csv }) => csvCell(csv?.(row))));
      return `${lines.map((cells) => cells.join(',')).join('\r\n')}\r\n`;
    },
  };
}

/** Saves a text as a file of the user. */
export function save(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = h('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The button that saves a table. */
export const csvButton = (csv, name) =>
  button(text.table.csv, () => save(name, `\uFEFF${csv()}`, 'text/csv;charset=utf-8'), { class: 'quiet' });
