// The order of a table's rows, and its file.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import './browser.js';

const { ordered } = await import('../../../web/parts/table.js');
const { csvCell, written } = await import('../../../web/data/csv.js');

const rows = [
  { name: 'TCS', value: 300 },
  { name: 'INFY', value: null },
  { name: 'infy', value: -5 },
  { name: 'ABB' },
  { name: 'ITC', value: 300 },
  { name: 'SBIN', value: 0 },
];
const names = (list) => list.map(({ name }) => name).join(' ');
const byValue = (row) => row.value;
const byName = (row) => row.name;

test('figures are ordered by size, and what is not known stands at the end either way', () => {
  assert.equal(names(ordered(rows, byValue, false)), 'infy SBIN TCS ITC INFY ABB');
  assert.equal(names(ordered(rows, byValue, true)), 'TCS ITC SBIN infy INFY ABB');
});

test('names are ordered as people do, in capitals or not', () => {
  assert.equal(names(ordered(rows, byName, false)), 'ABB infy INFY ITC SBIN TCS');
  assert.equal(names(ordered(rows, byName, true)), 'TCS SBIN ITC INFY infy ABB');
});

test('rows stay as they are given without an order, and are never moved in place', () => {
  assert.equal(ordered(rows, undefined, true), rows);
  const before = names(rows);
  ordered(rows, byName, true);
  assert.equal(names(rows), before);
});

test('a file has exact figures, a line a row, and a name for each column', () => {
  const columns = [
    { key: 'name', label: 'Name', csv: byName },
    { key: 'value', label: 'Value, ₹', csv: byValue },
    { key: 'tags', label: '', csv: () => '+1' },
    { key: 'none', label: 'None' },
  ];
  const expected = ['Name,"Value, ₹",tags,None', "TCS,300,'+1,", "INFY,,'+1,", ''].join('\r\n');
  assert.equal(written({ columns, rows: rows.slice(0, 2) }), expected);
});

test('a cell of a spreadsheet is quoted, and is no formula', () => {
  assert.equal(csvCell('a,"b"'), '"a,""b"""');
  assert.equal(csvCell('two\nlines'), '"two\nlines"');
  for (const first of ['=', '+', '-', '@', '\t']) assert.ok(csvCell(`${first}1+1`).startsWith("'"), first);
  assert.equal(csvCell(-12.5), '-12.5');
  assert.equal(csvCell(null), '');
});
