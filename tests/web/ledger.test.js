// The trades ledger by its pages: from an empty account and a dropped file to a downloaded worksheet, on a phone and at
// a desk.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { check } from './axe.js';
import { open, scene, sync, until, userOf, visit } from './support.js';

const SIZES = { phone: { width: 390, height: 844 }, desk: { width: 1280, height: 900 } };
const SETTINGS = { BHAV_NOW: '2026-11-20T11:00:00+05:30', BHAV_IMPORT_ATTEMPTS_PER_MINUTE: '0' };
// Prices are enough: no page here shows a signal.
const stage = scene(SETTINGS, ({ demo }) => until('the first snapshot', async () => (await fetch(`${demo.base}/api/index/snapshot`)).ok), { isAwaited: false });

/** A file of the simulated broker A, as a person downloads it. */
async function fileOf(name, which = 'a', user = 'SA0001') {
  const answer = await fetch(`${stage.demo.sim}/files/${which}/${user}/${name}`);
  assert.equal(answer.status, 200, name);
  return Buffer.from(await answer.arrayBuffer());
}

/** Drops files on the page, as from a folder of the desk: beside the zone they are taken too. */
async function drop(page, files) {
  const given = files.map(({ name, buffer }) => ({ name, text: buffer.toString('base64') }));
  await page.locator('main h1').evaluate((place, all) => {
    const data = new DataTransfer();
    for (const { name, text } of all) data.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
    place.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  }, given);
}

const api = (page, path) => page.evaluate(async (its) => (await fetch(its)).json(), path);

/** No wider than the window, in every state. */
async function expectNarrow(page, what) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(over <= 0, `${what} is ${over} px wider than the window`);
}

/** Accessible in both schemes, and no wider than the window, nor than a small phone's with large letters. */
async function expectFit(page, what, viewport) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await check(page, `${what} ${viewport.width} ${colorScheme}`);
  }
  await expectNarrow(page, what);
  await page.setViewportSize({ width: 320, height: 720 });
  await expectNarrow(page, `${what} at 320`);
  await page.evaluate(() => { document.documentElement.style.fontSize = '24px'; });
  await expectNarrow(page, `${what} at 320 with large letters`);
  await page.evaluate(() => { document.documentElement.style.fontSize = ''; });
  await page.setViewportSize(viewport);
}

for (const [size, viewport] of Object.entries(SIZES)) {
  test(`from a dropped file to a downloaded worksheet, ${size}`, async () => {
    const storageState = await userOf(stage);
    const { page, context, faults, violations } = await open(stage.browser, { storageState, viewport, acceptDownloads: true });
    await visit(page, `${stage.demo.base}/trades`);
    await page.getByRole('heading', { name: 'No trades yet' }).waitFor();
    await sync(page, stage.demo, 'a');
    // What a sync brings is no history.
    await visit(page, `${stage.demo.base}/trades`);
    await page.getByRole('heading', { name: 'Only what the syncs brought' }).waitFor();
    const before = (await api(page, '/api/trades')).trades.length;
    const links = await page.locator('.demo-files a').evaluateAll((all) => all.map((one) => one.href));
    assert.ok(links.includes(`${stage.demo.sim}/files/a/SA0001/tradebook.csv`), String(links));
    await expectFit(page, 'no trades', viewport);

    await drop(page, [{ name: 'tradebook.csv', buffer: await fileOf('tradebook.csv') }]);
    const preview = page.locator('.preview');
    await preview.getByRole('heading', { name: 'What tradebook.csv would change' }).waitFor();
    const { imports } = await api(page, '/api/trades/imports');
    const open_ = imports.find(({ state }) => state === 'preview');
    await preview.getByRole('row', { name: `New ${open_.new} are added` }).waitFor();
    assert.equal((await api(page, '/api/trades')).trades.length, before, 'nothing counts before it is confirmed');
    await preview.getByText('Expires in').waitFor();
    await expectFit(page, 'preview', viewport);
    await preview.getByRole('button', { name: 'Confirm' }).click();
    await preview.getByText(`${open_.new} lines added.`).waitFor();
    await preview.getByRole('button', { name: 'Close' }).click();
    const { rows } = await api(page, '/api/trades/reconciliation?limit=1000');
    const proved = rows.filter((row) => row.proved).length;
    assert.ok(proved > 3 && proved < rows.length, `${proved} of ${rows.length}`);
    await page.getByText(`Proved for ${proved} of ${rows.length} holdings against the brokers, 20 Nov,`).waitFor();
    await page.locator('.proof').getByText('Simulated').waitFor();

    // The plain button takes files too; the same file once more is known to the last line.
    await page.setInputFiles('#files', { name: 'again.csv', mimeType: 'text/csv', buffer: await fileOf('tradebook.csv') });
    await preview.getByRole('row', { name: `Known ${open_.new} stay as they are` }).waitFor();
    await preview.getByRole('button', { name: 'Drop' }).click();
    await preview.getByText('The preview is dropped; nothing changed.').waitFor();
    await preview.getByRole('button', { name: 'Close' }).click();

    const taken = page.locator('section', { has: page.getByRole('heading', { name: 'All trades' }) });
    await taken.getByLabel('Side').selectOption('sell');
    await until('sales alone', async () => (await api(page, '/api/trades?side=sell&limit=100')).trades.length === await taken.locator('tbody > tr:not(.details)').count());
    await taken.getByLabel('Side').selectOption('');

    await page.getByRole('link', { name: /show the/ }).click();
    await page.getByRole('heading', { name: 'Integrity', level: 1 }).waitFor();
    // One that fits as soon as its owner says when the missing shares came.
    const lots = ({ mends }) => mends.filter(({ correction }) => correction?.kind === 'opening_lot').length;
    const { symbol } = rows.find((row) => !row.proved && row.uncovered === 0 && lots(row) === 1);
    const card = page.locator('.proof-card', { has: page.getByRole('heading', { name: symbol }) });
    await card.getByText('Difference').waitFor();
    await expectFit(page, 'integrity', viewport);
    await mendByHand(page, card);

    await seeOwnShares(page, viewport);

    await page.goto(`${stage.demo.base}/gains?fy=2025-26`);
    await page.getByRole('heading', { name: 'Left out of the totals' }).waitFor();
    // What is left out comes before every total.
    const headings = await page.locator('main h2').allInnerTexts();
    assert.match(headings[0], /Left out/);
    assert.match(headings[1], /Totals of what is proved/);
    const gains = await api(page, '/api/trades/gains?fy=2025-26');
    for (const { says, section } of gains.rules) {
      const rule = page.locator('.rules li', { hasText: new RegExp(says.slice(1).replace(/[().]/g, '.')) });
      await rule.getByText(`Section ${section}, `).waitFor();
      await rule.getByText('Known until 31 Mar 2027').waitFor();
    }
    await page.locator('section[aria-labelledby=sales] .opener').first().click();
    await page.locator('tr.details .parts').getByText(/^Long-term, 112A, 12.5 %$/).first().waitFor();
    await expectFit(page, 'gains', viewport);
    const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save the worksheet (CSV)' }).click()]);
    assert.equal(saved.suggestedFilename(), 'worksheet-112a-2025-26.csv');
    const sheet = await page.evaluate(async () => (await fetch('/api/trades/tax/2025-26/112a.csv')).text());
    assert.equal(readFileSync(await saved.path(), 'utf8'), sheet);
    assert.ok(sheet.trimEnd().split('\n').length > 1, sheet);
    await page.goto(`${stage.demo.base}/gains?fy=2026-27`);
    await page.getByRole('button', { name: 'Save the worksheet (CSV)' }).click();
    await page.getByText('No form of this year is known yet').waitFor();

    await page.goto(`${stage.demo.base}/trades`);
    await page.getByRole('button', { name: /^Undo Zerodha tradebook/ }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Undo it' }).click();
    await page.getByRole('heading', { name: 'Only what the syncs brought' }).waitFor();
    assert.equal((await api(page, '/api/trades')).trades.length, before);
    assert.deepEqual(await violations(), []);
    // The browser itself writes a line for the 409 of the worksheet that is not there.
    assert.deepEqual(faults.filter((fault) => !fault.includes('409')), []);
    await context.close();
  });
}

/** What the trades add to the portfolio and to the page of a share. */
async function seeOwnShares(page, viewport) {
  await visit(page, `${stage.demo.base}/portfolio`);
  const { lots } = await api(page, '/api/trades/lots?isin=INE002A01018');
  assert.ok(lots.length > 2, 'RELIANCE was bought some times');
  await page.getByRole('button', { name: 'More of RELIANCE' }).click();
  const shown = page.locator('tr.details .lots li');
  await until('every lot', async () => (await shown.count()) === lots.length);
  const words = (await shown.allInnerTexts()).join(' ');
  assert.match(words, /Bought \d+ \w+ \d{4}[^]*long-term[^]*short-term, long in \d+ days \(/);
  await page.getByRole('button', { name: 'Returns' }).click();
  const { xirr, left_out: out } = await api(page, '/api/trades/returns');
  const rate = `${xirr > 0 ? '+' : '−'}${Math.abs(100 * xirr).toFixed(1)} %`;
  await page.locator('.figures').getByText(rate).first().waitFor();
  const shares = new Set(out.map(({ isin }) => isin).filter(Boolean)).size;
  await page.getByText(new RegExp(`^Without ${shares} shares`)).waitFor();
  await expectFit(page, 'returns', viewport);
  await visit(page, `${stage.demo.base}/s/NSE:RELIANCE`);
  await page.getByRole('heading', { name: 'Your last trades' }).waitFor();
  await until('the year’s candles', async () => (await page.locator('.bars g').count()) > 20);
  await page.getByRole('button', { name: 'max' }).click();
  const { trades } = await api(page, '/api/trades?isin=INE002A01018&limit=500');
  const { candles } = await api(page, '/api/market/candles?symbol=NSE:RELIANCE&days=600');
  const known = new Set(candles.map(({ date }) => date));
  const marked = new Set(trades.filter(({ date }) => known.has(date)).map(({ date, side }) => `${date} ${side}`));
  await until('a mark for each day and side', async () => (await page.locator('.own text').count()) === marked.size && marked.size > 0);
}

/** Says in the dialog what only the person knows, and takes it back again. */
async function mendByHand(page, card) {
  await card.getByRole('button', { name: /were acquired/ }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Apply' }).click();
  await dialog.getByText('Only you know this; it is needed.').first().waitFor();
  await dialog.getByLabel('Date').fill('2025-01-15');
  await dialog.getByLabel('Cost of all').fill('20,000');
  await dialog.getByRole('button', { name: 'Apply' }).click();
  await card.waitFor({ state: 'detached' });
  const { corrections: [said] } = await api(page, '/api/trades/corrections');
  assert.deepEqual([said.correction.kind, said.correction.date, said.correction.cost], ['opening_lot', '2025-01-15', 20000]);
  await page.getByRole('button', { name: /^Take back: Purchase without a trade/ }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Take it back' }).click();
  await card.waitFor();
}

test('a file that is not understood says why and what was seen, and one with odd lines names them', async () => {
  const storageState = await userOf(stage, ['a']);
  const { page, context, faults } = await open(stage.browser, { storageState, viewport: SIZES.phone });
  await visit(page, `${stage.demo.base}/trades`);
  const book = (await fileOf('tradebook.csv')).toString().split('\n');
  book[4] = book[4].replace(',buy,', ',hold,').replace(',sell,', ',hold,');
  await drop(page, [
    { name: 'shopping.csv', buffer: Buffer.from('milk,2\nbread,1\n') },
    { name: 'odd.csv', buffer: Buffer.from(book.join('\n')) },
  ]);
  const refused = page.locator('.preview', { has: page.getByRole('heading', { name: 'shopping.csv is not taken.' }) });
  await refused.getByText('none of its first 30 rows is the header').waitFor();
  await refused.getByText('bread').waitFor();
  const odd = page.locator('.preview', { has: page.getByRole('heading', { name: 'What odd.csv would change' }) });
  await odd.getByRole('row', { name: 'Refused 1 is not taken' }).waitFor();
  await odd.getByText('Line 5: it is neither buy nor sell').waitFor();
  await odd.getByRole('button', { name: 'Confirm' }).click();
  await page.locator('.preview').getByText('lines added.').waitFor();
  assert.deepEqual(faults.filter((fault) => !fault.includes('422')), []);
  await context.close();
});

test('two files that disagree show both figures, and one is kept', async () => {
  const storageState = await userOf(stage, ['a']);
  const { page, context } = await open(stage.browser, { storageState });
  await visit(page, `${stage.demo.base}/trades`);
  const [head, first] = (await fileOf('tradebook.csv')).toString().split('\n');
  const cells = first.split(',');
  const other = [...cells.slice(0, 8), '1.000000', ...cells.slice(9)];
  for (const [name, row] of [['one.csv', cells], ['two.csv', other]]) {
    await drop(page, [{ name, buffer: Buffer.from(`${head}\n${row.join(',')}\n`) }]);
    const preview = page.locator('.preview', { has: page.getByRole('heading', { name: `What ${name} would change` }) });
    await preview.getByRole('button', { name: 'Confirm' }).click();
    await page.locator('.preview').getByRole('button', { name: 'Close' }).last().click();
  }
  await page.getByText('Two files disagree about a trade of').waitFor();
  await page.getByRole('button', { name: /^Keep 1 ×/ }).click();
  await until('the choice holds', async () => (await api(page, '/api/trades')).trades.some(({ quantity, mark }) => quantity === 1 && mark === null));
  await page.getByText('Two files disagree').waitFor({ state: 'hidden' });
  // A trade begins an entry of the journal, which nobody has to type.
  await page.getByRole('button', { name: /in the journal$/ }).last().click();
  const form = page.locator('form.entry');
  await form.waitFor();
  assert.equal(await form.getByLabel('Qty').inputValue(), '1');
  assert.match(await form.getByLabel('Symbol').inputValue(), /^NSE:/);
  await context.close();
});

test('a share has its company and leads to its page also where a file has broker B’s own code', async () => {
  const storageState = await userOf(stage, ['b']);
  const { page, context, faults } = await open(stage.browser, { storageState });
  await visit(page, `${stage.demo.base}/trades`);
  const row = page.getByRole('row', { name: /TITIND Titan Company/ }).first();
  await row.waitFor();
  // The simulated broker B has files of its user.
  const links = await page.locator('.demo-files a').evaluateAll((all) => all.map((one) => one.href));
  const own = links.find((link) => link.endsWith('/all-transactions.csv'));
  assert.equal((await fetch(own)).status, 200, String(links));
  const path = () => page.getByRole('link', { name: 'TITIND' }).first().getAttribute('href');
  assert.equal(await path(), '/s/NSE:TITAN');
  await visit(page, `${stage.demo.base}/integrity`);
  await page.locator('.proof-card').getByText('Titan Company · Broker B').waitFor();
  assert.equal(await path(), '/s/NSE:TITAN');
  await page.getByRole('link', { name: 'TITIND' }).first().click();
  await page.getByRole('heading', { name: 'TITAN', level: 1, exact: true }).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test('a file of the other broker goes into that broker’s account by one press', async () => {
  const storageState = await userOf(stage);
  const { page, context, faults } = await open(stage.browser, { storageState, viewport: SIZES.phone });
  await visit(page, `${stage.demo.base}/trades`);
  await drop(page, [{ name: 'all-transactions.csv', buffer: await fileOf('all-transactions.csv', 'b', 'SB000001') }]);
  const preview = page.locator('.preview');
  await preview.getByText(/into Broker A \(Zerodha\)/).waitFor();
  await preview.getByText('This is a file of the other broker.').waitFor();
  await preview.getByRole('button', { name: 'Into Broker B (ICICI Direct) instead' }).click();
  await preview.getByText(/into Broker B \(ICICI Direct\)/).waitFor();
  assert.equal(await preview.count(), 1);
  await preview.getByRole('button', { name: 'Confirm' }).click();
  await preview.getByText('lines added.').waitFor();
  const { imports } = await api(page, '/api/trades/imports');
  assert.deepEqual(imports.map(({ account, state }) => [account, state]), [['b', 'live']]);
  assert.deepEqual(faults, []);
  await context.close();
});
