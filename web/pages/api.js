// The API's own description, made readable from the OpenAPI document that the service serves.
import { call } from '../data/api.js';
import * as live from '../data/live.js';
import { button, h, put, skeleton } from '../parts/view.js';
import { api as t } from '../text/api.js';

export const title = t.title;

/** Stands around code in the description's texts. */
const TICK = '\x60';

/** Code and **bold** of the description's texts; everything else stays as it is. */
const prose = (words = '') =>
  words.split(/(\x60[^\x60]+\x60|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith(TICK)) return h('code', null, part.slice(1, -1));
    return part.startsWith('**') ? h('b', null, part.slice(2, -2)) : part;
  });

const paragraphs = (words = '') => words.split('\n\n').map((part) => h('p', null, prose(part)));

export function show({ main }) {
  main.className = 'api';
  put(main, h('h1', null, t.title), skeleton(24));
  const fetched = live.repeat(async () => {
    draw(main, await call('/api/openapi.json'));
    fetched.stop();
  }, 60_000);
  return fetched.stop;
}

function draw(main, description) {
  const follow = ({ $ref }) =>
    $ref
      .slice(2)
      .split('/')
      .reduce((at, name) => at[name], description);
  const real = (thing) => (thing?.$ref ? follow(thing) : thing);
  const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
  );
  const filter = h('input', { type: 'search', id: 'find', autocomplete: 'off', spellcheck: 'false' });
  const groups = description.tags.map((tag) => {
    const own = operations.filter((operation) => operation.tags?.includes(tag.name));
    return (
      own.length > 0 &&
      h(
        'section',
        null,
        h('h2', null, tag.name),
        own.map((operation) => entry(operation, real)),
      )
    );
  });
  put(
    main,
    h('h1', null, t.title),
    h(
      'p',
      { class: 'muted' },
      `${description.info.title} ${description.info.version}, OpenAPI ${description.openapi}. `,
      h('a', { href: '/api/openapi.json' }, t.asJson),
    ),
    h('details', null, h('summary', null, t.about), paragraphs(description.info.description)),
    h('div', { class: 'filters' }, h('label', { for: 'find' }, t.find), filter),
    groups,
  );
  filter.addEventListener('input', () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const one of main.querySelectorAll('.operation')) one.hidden = !one.dataset.words.includes(wanted);
  });
}

function entry(operation, real) {
  const { method, path, summary } = operation;
  const body = real(operation.requestBody)?.content?.['application/json']?.schema;
  const parameters = (operation.parameters ?? []).map(real);
  const place = h('div', null);
  const node = h(
    'details',
    { class: 'operation', 'data-words': `${method} ${path} ${summary}`.toLowerCase() },
    h(
      'summary',
      null,
      h('b', { class: 'method' }, method),
      ' ',
      h('code', null, path),
      ' ',
      h('span', { class: 'muted' }, summary),
    ),
    place,
  );
  // Drawn when it is opened: all of it at once is a long page.
  node.addEventListener('toggle', () => {
    if (!node.open || place.firstChild) return;
    put(
      place,
      paragraphs(operation.description),
      h('p', null, h('b', null, t.access), ` ${t.who[operation['x-access']] ?? operation['x-access']}`),
      parameters.length > 0 &&
        members(
          t.parameters,
          parameters.map((one) => ({
            name: one.name,
            where: one.in,
            schema: one.schema,
            about: one.description,
            required: one.required,
          })),
        ),
      body && schemaOf(t.body, body, real),
      h('h3', null, t.answers),
      Object.entries(operation.responses).map(([status, response]) => answer(status, real(response), real)),
    );
  });
  return node;
}

function answer(status, response, real) {
  const schema = response.content?.['application/json']?.schema;
  return h(
    'div',
    null,
    h('p', null, h('b', null, status), ' ', prose(response.description)),
    schema && schemaOf(null, schema, real),
  );
}

/** A schema's members; those of inner ones open on demand. */
function schemaOf(heading, schema, real) {
  const whole = real(schema);
  const parts = [whole, ...(whole.allOf ?? []).map(real)];
  const properties = Object.assign({}, ...parts.map((part) => part.properties ?? {}));
  const required = parts.flatMap((part) => part.required ?? []);
  const rows = Object.entries(properties).map(([name, its]) => ({
    name,
    schema: its,
    about: its.description ?? real(its).description,
    required: required.includes(name),
    inner: inner(its, real),
  }));
  return rows.length ? members(heading, rows, real) : h('p', null, typeOf(whole, real));
}

/** The object within a member: itself, one of its choices, or what a list is of. */
const inner = (schema, real) =>
  [schema, schema.items, ...(schema.anyOf ?? [])]
    .filter(Boolean)
    .map(real)
    .find((one) => one.properties || one.allOf);

function typeOf(schema, real) {
  const whole = real(schema);
  if (whole.enum) return whole.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (whole.anyOf) return whole.anyOf.map((one) => typeOf(one, real)).join(' | ');
  if (whole.type === 'array') return `${t.listOf} ${typeOf(whole.items, real)}`;
  return [whole.type].flat().filter(Boolean).join(' | ') || (whole.allOf ? 'object' : '');
}

function members(heading, rows, real = (thing) => thing) {
  return h(
    'div',
    null,
    heading && h('h3', null, heading),
    h(
      'dl',
      { class: 'members' },
      rows.map(({ name, where, schema, about, required, inner: within }) =>
        h(
          'div',
          null,
          h(
            'dt',
            null,
            h('code', null, name),
            ' ',
            h(
              'span',
              { class: 'muted' },
              [where, schema && typeOf(schema, real), required ? '' : t.optional].filter(Boolean).join(', '),
            ),
          ),
          h('dd', null, prose(about), within && more(within, real)),
        ),
      ),
    ),
  );
}

function more(schema, real) {
  const place = h('div', null);
  const opener = button(
    t.members,
    () => {
      put(place, schemaOf(null, schema, real));
      opener.remove();
    },
    { class: 'link' },
  );
  place.append(opener);
  return place;
}
