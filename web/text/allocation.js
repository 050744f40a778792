export const allocation = {
  byBroker: 'By broker',
  bySector: 'By sector',
  captions: { brokers: 'The portfolio by broker', sectors: 'The portfolio by sector' },
  broker: 'Broker',
  sector: 'Sector',
  part: 'Part',
  share: 'Share',
  noShare: 'The portfolio has no value',
  unknown: 'Sector not known',
  unknownWhy: 'The list of sectors does not have these shares',
  /** @param {string} list @param {string} d */
  source: (list, d) =>
    `Sectors as the list “${list}” of ${d} names them. What is not in that list stands under “Sector not known”.`,
};
