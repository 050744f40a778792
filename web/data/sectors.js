// Which lines of business an index of a sector is about, as the index provider names them: by these a sector opens its
// shares. An index's own list of members is not kept.

const FINANCE = ['Financial Services'];

/** @type {{ [symbol: string]: string[] }} */
const INDUSTRIES = {
  'NSE:NIFTY IT': ['Information Technology'],
  'NSE:NIFTY AUTO': ['Automobile and Auto Components'],
  'NSE:NIFTY PHARMA': ['Healthcare'],
  'NSE:NIFTY HEALTHCARE': ['Healthcare'],
  'NSE:NIFTY FMCG': ['Fast Moving Consumer Goods'],
  'NSE:NIFTY METAL': ['Metals & Mining'],
  'NSE:NIFTY REALTY': ['Realty'],
  'NSE:NIFTY ENERGY': ['Oil Gas & Consumable Fuels', 'Power'],
  'NSE:NIFTY OIL AND GAS': ['Oil Gas & Consumable Fuels'],
  'NSE:NIFTY BANK': FINANCE,
  'NSE:NIFTY PSU BANK': FINANCE,
  'NSE:NIFTY PVT BANK': FINANCE,
  'NSE:NIFTY FIN SERVICE': FINANCE,
  'NSE:NIFTY MEDIA': ['Media Entertainment & Publication'],
  'NSE:NIFTY INFRA': ['Construction', 'Construction Materials', 'Power', 'Services', 'Telecommunication'],
  'NSE:NIFTY CONSR DURBL': ['Consumer Durables'],
  'NSE:NIFTY CHEMICALS': ['Chemicals'],
};

/** The lines of business of an index; none where that is not known. @param {string} symbol */
export const industriesOf = (symbol) => INDUSTRIES[symbol] ?? [];
