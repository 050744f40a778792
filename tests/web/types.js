// The types of web/. Every module is checked strictly; those of the list below may still have parameters without a
// type. The list may only shrink: a module that needs it no more is taken out of it.
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const WEB = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'web');

const LOOSE = new Set([
  'app.js', 'charts/candle-chart.js', 'charts/reliability.js', 'charts/spark.js', 'data/api.js', 'data/live.js',
  'find.js', 'offline.js', 'pages/account.js', 'pages/api.js', 'pages/market.js', 'pages/signals.js',
  'pages/status.js', 'parts/appearance.js', 'parts/dialog.js', 'parts/form.js', 'parts/held.js', 'parts/keys.js',
  'parts/signal-table.js', 'parts/star.js', 'parts/view.js', 'strip.js', 'text.js', 'text/account.js',
  'text/candles.js', 'text/chart.js', 'text/journal.js', 'text/keys.js', 'text/lists.js', 'text/login.js',
  'text/market.js', 'text/no-prices.js', 'text/signals.js', 'text/status.js', 'text/symbol.js', 'text/watch.js',
  'worker.js',
]);

const settings = ts.readConfigFile(join(WEB, 'jsconfig.json'), (path) => readFileSync(path, 'utf8'));
const { fileNames, options, errors } = ts.parseJsonConfigFileContent(settings.config, ts.sys, WEB);

/** What is wrong, by module. */
function problems(noImplicitAny) {
  const program = ts.createProgram(fileNames, { ...options, noImplicitAny });
  const found = [...errors, ...ts.getPreEmitDiagnostics(program)];
  /** @type {Map<string, ts.Diagnostic[]>} */
  const by = new Map();
  for (const one of found) {
    const name = one.file ? relative(WEB, one.file.fileName) : 'jsconfig.json';
    by.set(name, [...(by.get(name) ?? []), one]);
  }
  return by;
}

const complaints = [];
const say = (found) => complaints.push(ts.formatDiagnostic(found, { getCurrentDirectory: () => WEB, getCanonicalFileName: (name) => name, getNewLine: () => '\n' }).trim());
for (const found of problems(false).values()) found.forEach(say);
const strict = problems(true);
if (complaints.length === 0) {
  for (const [module, found] of strict) if (!LOOSE.has(module)) found.forEach(say);
  for (const module of LOOSE) if (!strict.has(module)) complaints.push(`${module}: has a type for everything; take it out of the list`);
}
if (complaints.length > 0) {
  console.error(complaints.join('\n'));
  process.exit(1);
}
console.log(`types: ${fileNames.length - LOOSE.size} modules strictly, ${LOOSE.size} not yet`);
