// Files of the user: a table for a spreadsheet, and how a text is saved. It comes when a file is wanted.

/** A cell of a CSV file. Text that a spreadsheet would run as a formula is quoted with a tab. @param {string | number | null | undefined} value */
export function csvCell(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The table as it stands: exact figures, not their display. @param {{ columns: Column<any>[], rows: any[] }} table */
export function written({ columns, rows }) {
  const lines = [columns.map(({ label, key }) => csvCell(label || key))];
  for (const row of rows) lines.push(columns.map(({ csv }) => csvCell(csv?.(row))));
  return `${lines.map((cells) => cells.join(',')).join('\r\n')}\r\n`;
}

/** Saves a text as a file of the user. @param {string} name @param {any} content @param {string} type */
export function save(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
