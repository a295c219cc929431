import { deleteCalendar } from "./calendars/delete.js";
import { getCalendar } from "./calendars/get.js";
import { listCalendars } from "./calendars/list.js";
import { putCalendar } from "./calendars/put.js";
import { listDefaults } from "./defaults/list.js";
import { setDefaults } from "./defaults/set.js";
import { listQuotas } from "./quotas/list.js";
import { setQuota } from "./quotas/set.js";
import { createToken } from "./tokens/create.js";
import { listTokens } from "./tokens/list.js";
import { revokeToken } from "./tokens/revoke.js";
import { allowTypes } from "./types/allow.js";
import { listTypes } from "./types/list.js";

/** All operations, by noun and verb. The only list: client, routes, rights and descriptions are made from it. */
export const OPERATIONS = {
  calendars: { list: listCalendars, get: getCalendar, put: putCalendar, delete: deleteCalendar },
  defaults: { list: listDefaults, set: setDefaults },
  quotas: { list: listQuotas, set: setQuota },
  tokens: { list: listTokens, create: createToken, revoke: revokeToken },
  types: { list: listTypes, allow: allowTypes },
};
