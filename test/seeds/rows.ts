/** The systems whose behaviour Carillon promises to cover; each row below was learnt from one of them. */
export type Source = "Docspell" | "Nuntium" | "Kuzzle" | "TimescaleDB" | "In-Portal";

/** One promised behaviour: its tests are those whose `describe` or `test` title starts with the id. */
export interface Row {
  readonly id: string;
  readonly behaviour: string;
  readonly source: Source;
}

const docspell: readonly (readonly [id: string, behaviour: string])[] = [
  ["A1", "the periodic part only submits: with no worker alive, the due job waits in its queue"],
  ["A2", "what is due exactly now fires; in a small backlog of a queue the earliest due task goes first"],
  ["A3", "five nodes share the work: 100 occurrences become 100 jobs of 100 nominal times"],
  ["A4", "a run still going skips the next occurrence and due moves on, also with a foreign worker"],
  ["A5", "times missed while every node was down collapse into one run"],
  ["A6", "a node killed in mid-claim leaves no mark behind: another does the work within the mutex TTL"],
  ["A7", "one timer to the next due time, re-armed by a wake message, or without it when that is lost"],
  ["A8", "a task is paused and resumed, with a note; paused it does not run"],
  ["A9", "a task runs once now, also while paused, and its next due time stays as it was"],
  ["A10", "owners are shut off from each other: ids may repeat, another's task is not found"],
  ["A11", "one task per owner and id, put atomically: ten parallel puts make one task"],
  ["A12", "subject, submitter, group, priority and payload are kept on the task and reach the job"],
  ["A13", "a schedule is checked without storing it: canonical form, plain words, next times in its zone"],
  ["A14", "a finished one-off never fires again; times all past are stored finished, with a warning"],
  ["A15", "a crowd of one owner's due tasks does not starve another owner's single one"],
  ["A16", "a worker told to stop lets the running job end well"],
  ["A17", "the queue's own limit of running jobs holds: what is due waits, and all of it runs"],
  ["A18", "a manual run still going skips the next occurrence, on record"],
  ["A19", "whichever of two nodes is the queue's first: killed with a decided occurrence, the other does it"],
  ["A20", "a single job, now or later, has retries, a time limit and alerts of its own"],
  ["A21", "an account of any name, collective/user or an address, is an owner: its own, and found again"],
];

const nuntium: typeof docspell = [
  ["B1", "enqueue and advance are one step: Redis cut in mid-claim gives no duplicate and no silent miss"],
  ["B2", "a run that starts too soon after the last one is dropped, with its reason on record"],
  ["B3", "the last run is counted from its start, and kept when it failed"],
  ["B4", "a time box of half the interval: the run ends as partial and the next goes on from its cursor"],
  ["B5", "an owner's tasks go with the owner, and a queued job of a deleted task does nothing"],
  ["B6", "an interval is positive, and creating a task twice leaves one"],
  ["B7", "a default time box of half the interval holds for tasks that say nothing, with a tolerance of 5 s"],
  ["B8", "a tolerance is about scheduled runs: what a person, a retry or a backfill asks for runs"],
  [
    "B9",
    "a fan-out is boxed as a whole: what its time limit leaves is done next, by the next run or a retry",
  ],
  ["T1", "timeline: a second run that starts 57 s after the first is let through"],
  ["T2", "timeline: a worker one minute late drops nothing"],
  ["T3", "timeline: a run 28 s after the last is dropped, and the last run stays where it was"],
  ["T4", "timeline: an endless run ends as partial, in time for the next one"],
  ["T8", "timelines T1 to T4: the next and the last run at each of their lines"],
];

const kuzzle: typeof docspell = [
  ["C1", "tasks are added, listed, updated, removed, validated and journalled by SDK, HTTP and CLI"],
  ["C2", "plain words and the next execution are computed when asked for, never stored"],
  ["C3", "a timestamp runs once, whatever the number of nodes, and its task is finished"],
  ["C4", "the last status of a task is told and cannot be written"],
  ["C5", "the journal filters by task, node, time and outcome, in pages"],
  ["C6", "a task two months away neither fires early nor is forgotten"],
  ["C7", "a mutex whose lease ran out cannot be freed by its old holder"],
  ["C8", "nodes with wrong clocks agree: one run for each of 20 occurrences"],
  ["C9", "a stored HTTP request is sent, and only to addresses that are allowed"],
  ["C10", "a cron field like /5 is refused, with the hint */5"],
  ["C11", "plain words and the next execution are in the answers of validate, put and list alike"],
  ["C12", "a description is kept with its accents; the last status equals the journal's newest run"],
  ["C13", "late, not missed: a node that was slow for up to 5 s loses no occurrence"],
];

const timescale: typeof docspell = [
  ["D1", "drifting interval: the next start is counted from the finish"],
  ["D2", "fixed interval: starts lie on origin + k × interval, slots that a run covers are skipped"],
  ["D3", "local wall-clock time is kept when summer time comes and goes"],
  ["D4", "a failure is retried with backoff, capped, and never past the next slot of a fixed schedule"],
  ["D5", "a start counts as a crash until its end takes it back"],
  ["D6", "after a crash the wait is at least five minutes, stored, and does not slide at restarts"],
  ["D7", "the statistics of a task add up"],
  ["D8", "a task is paused after n failures in a row, and starts from zero when resumed"],
  ["D9", "a run past its time limit is ended and counts as a failure, not a crash"],
  ["D10", "a task's display state goes through SCHEDULED, STARTING, TERMINATING, DISABLED"],
  ["D11", "tasks change while the nodes run; at one instant the higher priority goes first"],
  ["D12", "a handler may say when its task runs next"],
  ["D13", "manual runs are in the journal"],
  ["D14", "history is pruned by count and age, per task"],
  ["D15", "one call tells the statistics of all tasks, and one all failures of all queues, newest first"],
  ["D16", "a pause in the wait after a crash holds the run: no second start until the resume"],
  ["D17", "the wait after a crash doubles with each crash in a row, and a success resets it"],
  ["D18", "an operator's cancel from another process ends a running job: signal, grace, no retry"],
  ["D19", "the table of all tasks has their crashes"],
  ["D20", "a crash of an item is a crash: counted everywhere, and it waits, held by a pause"],
  [
    "D21",
    "the errors of all tasks are one view: grouped by cause, with whom they hit, and one cause is run again",
  ],
  ["D22", "alerts do not storm: a digest by cause, and its end is one message"],
  ["D23", "a silence names a cause, until a time or until it is gone"],
  ["T5", "timeline: a drifting task fails until it is paused, linear and exponential backoff"],
  ["T6", "timeline: a fixed task fails, each retry held to the next slot"],
  ["T7", "timeline: a crash, five minutes of waiting, then a success that ends the streak"],
];

const inPortal: typeof docspell = [
  ["E1", "a task type generates items and processes each in a job of its own, once"],
  ["E2", "a child job that takes its process down harms no other"],
  ["E3", "a run's record says when it was planned, created, started and finished, where, and how it ended"],
  ["E4", "what a handler logs and prints is kept with its attempt, cut to size and marked so"],
  ["E5", "nothing to do is an outcome of its own: checked moves on, the last run stays"],
  ["E6", "clean runs are deleted when old, failures are kept longer"],
  ["E7", "a failing task says so where tasks are listed, and an alert hook is called once"],
  ["E8", "retries are counted and limited, back off, and give way to the next occurrence"],
  ["E9", "what runs next is listed ahead, and that is what happens"],
  ["E10", "an unknown task type is refused and nothing is stored"],
  ["E11", "each item of a fan-out has a record; a retry does exactly those that failed"],
  ["E12", "workers are tracked: a killed one is shown as dead, and a type that none handles is named"],
  ["E13", "alerts go to an e-mail address, those of a minute in one mail"],
  ["E15", "output of a run or an item can be read while it runs, and is kept if its process dies"],
  ["E16", "items on several processes: the worker and the pid of each are those that did it"],
  ["E17", "a retry of failed items is a retry: its own trigger and author, and no lateness or late-start"],
  ["E14", "who asked is on record: who put a task, and who triggered, enqueued or backfilled a run"],
  ["E18", "failed items come first on the page of their run, with the button; Bull Board leads items to it"],
  ["E19", "a run with nothing to do is seen: list, stats, pages, Bull Board say when it last checked"],
  ["E20", "an administrator is one person: default alerts of all tasks are collected by address"],
  ["E21", "an interval or a time limit in seconds, as there, is stored with a warning of both readings"],
  ["E22", "a deploy that changed the wrong schedules is seen task by task, and taken back as a whole"],
  ["E23", "support finds an item of any run by its data: in which run it was, when, and how it ended"],
  ["E24", "a task's state is the same few words at each door, and its next time is when it really runs"],
  [
    "E25",
    "a field of many tasks is changed at once or of none, with each one's old and new times, and taken back",
  ],
  ["E26", "support goes through a customer's runs by keyboard, each beside the list, and sends its address"],
  [
    "E27",
    "a team lead sees since a deploy, against as long before: what fails more, got slower, starts late",
  ],
];

const of =
  (source: Source) =>
  ([id, behaviour]: readonly [string, string]): Row => ({ id, behaviour, source });

/** Every promised behaviour, in the order they are reported. */
export const rows: readonly Row[] = [
  ...docspell.map(of("Docspell")),
  ...nuntium.map(of("Nuntium")),
  ...kuzzle.map(of("Kuzzle")),
  ...timescale.map(of("TimescaleDB")),
  ...inPortal.map(of("In-Portal")),
];
