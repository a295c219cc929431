import { listAlerts } from "./alerts/list.js";
import { testAlert } from "./alerts/test.js";
import { undeliveredAlerts } from "./alerts/undelivered.js";
import { cancelBackfill } from "./backfills/cancel.js";
import { getBackfill } from "./backfills/get.js";
import { listBackfills } from "./backfills/list.js";
import { startBackfill } from "./backfills/start.js";
import { startBackfills } from "./backfills/start-many.js";
import { deleteCalendar } from "./calendars/delete.js";
import { getCalendar } from "./calendars/get.js";
import { listCalendars } from "./calendars/list.js";
import { putCalendar } from "./calendars/put.js";
import { listChanges } from "./changes/list.js";
import { undoChange } from "./changes/undo.js";
import { listDefaults } from "./defaults/list.js";
import { setDefaults } from "./defaults/set.js";
import { listDeleted } from "./deleted/list.js";
import { deleteFreeze } from "./freezes/delete.js";
import { listFreezes } from "./freezes/list.js";
import { putFreeze } from "./freezes/put.js";
import { doctor } from "./health/doctor.js";
import { status } from "./health/status.js";
import { listNames } from "./names/list.js";
import { listNamespaces } from "./namespaces/list.js";
import { listNodes } from "./nodes/list.js";
import { boardOf } from "./occurrences/board.js";
import { explain } from "./occurrences/explain.js";
import { plannedLoad } from "./occurrences/load.js";
import { listTicks, tickStrips } from "./occurrences/ticks.js";
import { listUpcoming } from "./occurrences/upcoming.js";
import { deleteQueue } from "./queues/delete.js";
import { limitQueue } from "./queues/limit.js";
import { queueLimits } from "./queues/limits.js";
import { listQueues } from "./queues/list.js";
import { pauseQueue } from "./queues/pause.js";
import { resumeQueue } from "./queues/resume.js";
import { listQuotas } from "./quotas/list.js";
import { setQuota } from "./quotas/set.js";
import { cancelRun } from "./runs/cancel.js";
import { cancelMany } from "./runs/cancel-many.js";
import { compareRun } from "./runs/compare.js";
import { failures } from "./runs/failures.js";
import { getRun } from "./runs/get.js";
import { findItems, listItems } from "./runs/items.js";
import { journal } from "./runs/journal.js";
import { listRuns } from "./runs/list.js";
import { replayRun } from "./runs/replay.js";
import { replayRuns } from "./runs/replay-many.js";
import { retryItems } from "./runs/retry-items.js";
import { runningRuns } from "./runs/running.js";
import { listSkips } from "./runs/skips.js";
import { stats } from "./runs/stats.js";
import { statsMany } from "./runs/stats-many.js";
import { trends } from "./runs/trends.js";
import { applySet } from "./sets/apply.js";
import { driftOfSet } from "./sets/drift.js";
import { listSets } from "./sets/list.js";
import { planSet } from "./sets/plan.js";
import { observe } from "./shadow/observe.js";
import { shadowReport } from "./shadow/report.js";
import { deleteSilence } from "./silences/delete.js";
import { listSilences } from "./silences/list.js";
import { putSilence } from "./silences/put.js";
import { countTasks } from "./tasks/counts.js";
import { deleteTask } from "./tasks/delete.js";
import { deleteMany } from "./tasks/delete-many.js";
import { editMany } from "./tasks/edit-many.js";
import { getTask } from "./tasks/get.js";
import { listTasks } from "./tasks/list.js";
import { moveTask } from "./tasks/move.js";
import { pauseTask } from "./tasks/pause.js";
import { pauseMany } from "./tasks/pause-many.js";
import { putTask } from "./tasks/put.js";
import { replaceTask } from "./tasks/replace.js";
import { restoreTask } from "./tasks/restore.js";
import { resumeTask } from "./tasks/resume.js";
import { resumeMany } from "./tasks/resume-many.js";
import { planResume } from "./tasks/resume-plan.js";
import { listRevisions } from "./tasks/revisions.js";
import { spreadTasks } from "./tasks/spread.js";
import { tagMany } from "./tasks/tag-many.js";
import { triggerTask } from "./tasks/trigger.js";
import { triggerMany } from "./tasks/trigger-many.js";
import { validate } from "./tasks/validate.js";
import { createToken } from "./tokens/create.js";
import { listTokens } from "./tokens/list.js";
import { revokeToken } from "./tokens/revoke.js";
import { allowTypes } from "./types/allow.js";
import { getType } from "./types/get.js";
import { listTypes } from "./types/list.js";
import { listWorkers } from "./workers/list.js";

/** All operations, by noun and verb. The only list: client, routes, rights and descriptions are made from it. */
export const OPERATIONS = {
  alerts: { list: listAlerts, undelivered: undeliveredAlerts, test: testAlert },
  backfills: {
    start: startBackfill,
    startMany: startBackfills,
    list: listBackfills,
    get: getBackfill,
    cancel: cancelBackfill,
  },
  calendars: { list: listCalendars, get: getCalendar, put: putCalendar, delete: deleteCalendar },
  changes: { list: listChanges, undo: undoChange },
  defaults: { list: listDefaults, set: setDefaults },
  deleted: { list: listDeleted },
  freezes: { list: listFreezes, put: putFreeze, delete: deleteFreeze },
  health: { status, doctor },
  names: { list: listNames },
  namespaces: { list: listNamespaces },
  nodes: { list: listNodes },
  occurrences: {
    board: boardOf,
    upcoming: listUpcoming,
    load: plannedLoad,
    ticks: listTicks,
    ticksMany: tickStrips,
    explain,
  },
  queues: {
    list: listQueues,
    pause: pauseQueue,
    resume: resumeQueue,
    limits: queueLimits,
    limit: limitQueue,
    delete: deleteQueue,
  },
  quotas: { list: listQuotas, set: setQuota },
  runs: {
    list: listRuns,
    running: runningRuns,
    get: getRun,
    compare: compareRun,
    items: listItems,
    findItems,
    retryItems,
    replay: replayRun,
    replayMany: replayRuns,
    cancel: cancelRun,
    cancelMany,
    journal,
    failures,
    trends,
    stats,
    statsMany,
    skips: listSkips,
  },
  sets: { list: listSets, drift: driftOfSet, plan: planSet, apply: applySet },
  shadow: { observe, report: shadowReport },
  silences: { list: listSilences, put: putSilence, delete: deleteSilence },
  tasks: {
    list: listTasks,
    counts: countTasks,
    get: getTask,
    put: putTask,
    replace: replaceTask,
    validate,
    delete: deleteTask,
    pause: pauseTask,
    resume: resumeTask,
    trigger: triggerTask,
    move: moveTask,
    revisions: listRevisions,
    restore: restoreTask,
    pauseMany,
    resumeMany,
    resumePlan: planResume,
    triggerMany,
    spread: spreadTasks,
    editMany,
    tagMany,
    deleteMany,
  },
  tokens: { list: listTokens, create: createToken, revoke: revokeToken },
  types: { list: listTypes, get: getType, allow: allowTypes },
  workers: { list: listWorkers },
};
