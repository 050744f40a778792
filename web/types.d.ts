// Types that several modules name. For the editor and the type check; not served.

type Bare<Path> = Path extends `${infer Before}?${string}` ? Before : Path;

type Paths = import('./openapi').paths;

/** What `GET` of a path answers, as the API's description has it; anything for other paths. */
type Answer<Path> =
  Bare<Path> extends keyof Paths
    ? Paths[Bare<Path>] extends { get: { responses: { 200: { content: { 'application/json': infer Document } } } } }
      ? Document
      : any
    : any;

/** A piece of text; `why` is its reason, which a press shows. With `part`, of a hundred, it is a bar. */
type Bit = string | { text: string; kind?: string; title?: string; href?: string; why?: string; part?: number };

interface Column<Row> {
  /** Names the column; the member of `of` unless given. */
  key?: string;
  /** The member of the row that it is sorted by and that goes into the CSV file. */
  of?: string;
  label: string;
  hint?: string;
  number?: boolean;
  wide?: boolean;
  /** 1 is always shown; 2 and 3 open below the row where the window is narrow, 3 first. */
  rank?: number;
  /** Its place in the lines of a phone: a and b above, c and d, e and f below; `told` if a phone's own column shows it. */
  at?: string;
  /** Shown on a phone alone. */
  phone?: boolean;
  /** In the CSV file alone. */
  fileOnly?: boolean;
  /** Flashes when it changes. */
  live?: boolean;
  show?: (row: Row) => Bit | Bit[];
  /** Made once for each row; stands in front of what `show` says. */
  control?: (current: () => Row) => Node | null;
  /** With it the heading is a button that sorts. */
  sort?: (row: Row) => string | number | null | undefined;
  /** With it the column is in the CSV file. */
  csv?: (row: Row) => string | number | null | undefined;
}

interface Shape<Row> {
  name: string;
  caption: string;
  columns: Column<Row>[];
  key: (row: Row) => string;
  /** Names a row for who cannot see it; its key unless given. */
  label?: (row: Row) => string;
  /** Stands above the table, beside the choice of the order. */
  lead?: Node;
  /** Stays a table on a phone; else a row is two or three lines there. */
  plain?: boolean;
  /** Rows stand as they are given: no heading sorts. */
  isFixed?: boolean;
  /** Column by which it is sorted at first; with `-` largest first. */
  sorted?: string;
  /** What opens below a row. */
  details?: (row: Row) => Node | null;
  kind?: (row: Row) => string;
}

type Holding = Answer<'/api/portfolio/holdings'>['holdings'][number];
type MergedHolding = Answer<'/api/portfolio/holdings'>['summary']['merged'][number];

/** A row of the holdings: one of a broker, or what both hold of a share. */
type HoldingRow = Omit<MergedHolding, 'parts' | 'isin'> &
  Partial<Omit<Holding, keyof MergedHolding>> & {
    key: string;
    isin: string | null;
    brokers: string;
    parts: Holding[];
    search: string;
    last_price: number | null;
    as_of: string | null;
  };

/** A watch list; without an id it is not stored yet. */
interface List {
  id?: number;
  name: string;
  symbols: string[];
}

/** A day of the trend. */
type Point = Answer<'/api/portfolio/pnl'>['trend'][number];

/** The last price of a date. */
interface Close {
  date: string;
  close: number;
}

/** A day before the first point of the trend, of which the value alone is told. */
interface EstimatedPoint extends Partial<Omit<Point, 'source' | 'total_invested' | 'total_pnl' | 'brokers' | 'holdings'>> {
  date: string;
  total_current_value: number;
  total_invested: null;
  total_pnl: null;
  brokers: null;
  holdings: null;
  source: 'estimate';
}

/** What the trend draws. */
type Drawn = Point | EstimatedPoint;

/** What is held of a symbol today, with the closes that are stored of it. */
interface Share {
  symbol: string;
  quantity: number;
  value: number;
  candles: Close[];
}

interface Context {
  main: HTMLElement;
  path: string;
  go: (path: string) => void;
  announce: (words: string) => void;
}

interface Page {
  title: string | ((path: string) => string);
  /** Draws the page; returns what ends it. */
  show: (context: Context) => (() => void) | void;
}

interface Session {
  user: { id: number; email?: string; name: string | null } | null;
  expires_at: string | null;
  registration: string;
  version: string | null;
  web: string | null;
  login_pages: { a: string; b: string } | null;
  /** Why the browser's cookies are refused, where another login would not help. */
  refused?: string;
  known: boolean;
  /** A proxy in front has answered in the service's place, with a login of its own. */
  in_front: boolean;
}
