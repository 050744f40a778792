// The market's page: a sector opens its shares, all shares are a table, and names are told in words.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, scene, until, visit } from './support.js';

const stage = scene({ BHAV_NOW: '2026-11-20T11:00:00+05:30' });

const answerOf = async (path) => (await fetch(stage.demo.base + path)).json();
const priced = () => until('every price', async () => (await answerOf('/api/market/movers')).priced === 50);
const figure = (words) => Number(words.replace('−', '-').replace(/[^\d.-]/g, ''));

/** The paths of the API that a page asks for. */
function asked(page) {
  const paths = [];
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname.startsWith('/api/')) paths.push(pathname + search);
  });
  return paths;
}

for (const width of [390, 1280]) {
  test(`a sector opens its shares below its tile, at ${width} px`, async () => {
    await priced();
    const { page, context, faults } = await open(stage.browser, { viewport: { width, height: 900 } });
    await visit(page, `${stage.demo.base}/`);
    const paths = asked(page);
    const tile = page.getByRole('button', { name: /^Nifty IT/ });
    assert.equal(await tile.getAttribute('aria-expanded'), 'false');
    await tile.click();
    const opened = page.locator('.sector-shares');
    await opened.locator('tbody tr').first().waitFor();
    assert.equal(await tile.getAttribute('aria-expanded'), 'true');
    assert.deepEqual((await opened.locator('a.symbol').allInnerTexts()).sort(), ['HCLTECH', 'INFY', 'TCS', 'TECHM']);
    await opened.getByText('Tata Consultancy Services').waitFor();
    await opened.getByText('those in Information Technology').waitFor();
    assert.match(await opened.getByRole('row', { name: /INFY/ }).innerText(), /INFY[^]*Infosys[^]*1,\d{3}\.\d\d[^]*[+−]?\d\.\d\d %/);
    // It stands below its own row of tiles, whatever the width.
    const [top, below] = await Promise.all([tile.boundingBox(), opened.boundingBox()]);
    assert.ok(below.y > top.y && below.y - (top.y + top.height) < 20, JSON.stringify([top, below]));
    // Another one takes its place, and one without shares says so.
    await page.getByRole('button', { name: /^Nifty Realty/ }).click();
    await opened.getByText('None of the 50 shares that are followed is in this sector.').waitFor();
    assert.equal(await opened.count(), 1);
    // One request brought every share to both.
    assert.equal(paths.filter((path) => path.startsWith('/api/portfolio/live-prices')).length, 0, String(paths));
    assert.ok(paths.filter((path) => path.includes('all=true')).length >= 1, String(paths));
    await page.getByRole('link', { name: 'Nifty Realty: chart of the index' }).waitFor();
    await page.getByRole('button', { name: /^Nifty Realty/ }).click();
    assert.equal(await opened.count(), 0);
    await page.getByRole('button', { name: /^Nifty IT/ }).click();
    await opened.getByRole('link', { name: 'INFY' }).click();
    await page.getByRole('heading', { name: 'INFY', level: 1 }).waitFor();
    assert.deepEqual(faults, []);
    await context.close();
  });
}

test('all shares are a table that is sorted by its headings, from one request', async () => {
  await priced();
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/`);
  const paths = asked(page);
  await page.getByRole('button', { name: 'All shares as a table' }).click();
  const rows = page.locator('.all-shares tbody tr');
  await until('every share', async () => (await rows.count()) === 50);
  const changes = async () => (await rows.locator('td:last-child').allInnerTexts()).map(figure);
  const sorted = (list, sign) => list.every((value, at) => at === 0 || sign * (list[at - 1] - value) >= 0);
  await until('the most gained first', async () => sorted(await changes(), 1));
  const today = page.locator('.all-shares').getByRole('columnheader', { name: 'Today' });
  await today.getByRole('button').click();
  await until('the most lost first', async () => sorted(await changes(), -1));
  await page.locator('.all-shares').getByRole('button', { name: 'Share', exact: true }).click();
  const names = await rows.locator('.company').allInnerTexts();
  assert.deepEqual(names, [...names].sort((a, b) => a.localeCompare(b, 'en-IN')), 'by name');
  for (const name of ['Larsen & Toubro', 'State Bank of India', 'Sun Pharmaceutical Industries']) assert.ok(names.includes(name), name);
  // The sectors take what is there already.
  const before = paths.length;
  await page.getByRole('button', { name: /^Nifty Auto/ }).click();
  await page.locator('.sector-shares tbody tr').first().waitFor();
  assert.deepEqual(paths.slice(before).filter((path) => !path.endsWith('all=true')), []);
  // While it is open the longer answer is asked for in place of the shorter one, and closed the shorter one again.
  assert.equal(paths.filter((path) => path === '/api/market/movers').length <= 1, true, String(paths));
  await page.getByRole('button', { name: 'Close the table' }).click();
  await page.getByRole('button', { name: /^Nifty Auto/ }).click();
  const closed = paths.length;
  await until('the short one', async () => paths.slice(closed).includes('/api/market/movers'));
  assert.deepEqual(faults, []);
  await context.close();
});

test('companies are told in words: in watch lists, searches, signals and among those that moved', async () => {
  await priced();
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/watch`);
  const paths = asked(page);
  for (const [symbol, name] of [['TCS', 'Tata Consultancy Services'], ['NIFTY 50', 'Nifty 50']]) {
    await page.getByRole('row', { name: new RegExp(symbol) }).getByText(name, { exact: true }).waitFor();
  }
  await page.keyboard.press('/');
  await page.getByRole('combobox', { name: 'Find a share or an index' }).fill('state bank');
  await page.getByRole('option', { name: 'SBIN State Bank of India' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: 'Market', exact: true }).click();
  await until('movers', async () => (await page.locator('.halves .company').count()) === 10);
  for (const name of await page.locator('.halves .company, .signals-box .company').allInnerTexts()) assert.doesNotMatch(name, /^[A-Z]{5,}/);
  await page.getByRole('link', { name: 'Signals', exact: true }).click();
  const companies = page.locator('main table .company');
  await companies.first().waitFor();
  for (const name of await companies.allTextContents()) assert.doesNotMatch(name, /^(\s*|[A-Z]{5,}.*)$/);
  // Names are asked for all at once, and none a second time.
  const named = paths.filter((path) => path.includes('search?symbols=')).map((path) => decodeURIComponent(path.split('=')[1]).split(','));
  assert.equal(new Set(named.flat()).size, named.flat().length, String(named));
  assert.ok(named.length <= 3, String(named));
  assert.deepEqual(faults, []);
  await context.close();
});
