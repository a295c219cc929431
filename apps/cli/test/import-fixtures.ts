/** Crontabs as people write them; those with `user` are of the system. */
export const CRONTABS: readonly { text: string; user?: true }[] = [
  {
    text: "# m h dom mon dow command\n0 4 * * * /opt/shop/bin/backup\n0 6 * * 1-5 /opt/shop/bin/report --daily\n",
  },
  {
    text: "SHELL=/bin/bash\nMAILTO=ops@example.com\nPATH=/bin:/usr/bin\n\n01 01 * * * /usr/local/bin/mirror -v a ; /usr/local/bin/mirror -v b\n03 05 * * * /sbin/hwclock --systohc\n# 25 04 1 * * /usr/bin/dnf -y update\n",
  },
  {
    text: "CRON_TZ=America/New_York\n30 9 * * 1-5 /srv/trade/open.sh >> /srv/trade/open.log 2>&1\n50 6 * * 1-5\t/srv/trade/.venv/bin/python /srv/trade/check.py\n0 18 * * 0 /srv/trade/screen.sh\n",
  },
  {
    text: "SHELL=/bin/sh\nPATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin\n17 *\t* * *\troot    cd / && run-parts --report /etc/cron.hourly\n25 6\t* * *\troot\ttest -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )\n47 6\t* * 7\troot\ttest -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.weekly )\n52 6\t1 * *\troot\ttest -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.monthly )\n",
    user: true,
  },
  {
    text: "0 */12 * * * root test -x /usr/bin/certbot -a \\! -d /run/systemd/system && perl -e 'sleep int(rand(43200))' && certbot -q renew\n",
    user: true,
  },
  {
    text: "17 * * * * scan flock -n /var/lib/scan/.lock /usr/local/bin/scan-run >> /var/log/scan.log 2>&1\n",
    user: true,
  },
  {
    text: "* 8-23 * * * cd /opt/race && flock -n /var/lock/cycle.lock /opt/race/venv/bin/python3 run_cycle.py >> logs/cycle.log 2>&1\n*/10 * * * * cd /opt/race && /opt/race/venv/bin/python3 dispatch.py >> logs/dispatch.log 2>&1\n",
  },
  {
    text: "*/15 * * * * flock -n /tmp/sync.lock -c '/srv/sync.sh --all'\n0 3 * * * /usr/bin/flock -w 600 /tmp/sync.lock /srv/full.sh\n30 3 * * 0 flock /tmp/vacuum.lock /srv/vacuum.sh\n",
  },
  {
    text: "@daily /srv/bin/rotate\n@hourly /srv/bin/poll\n@weekly /srv/bin/digest\n@reboot /srv/bin/start-agent\n@monthly /srv/bin/invoice\n@yearly /srv/bin/archive\n@midnight /srv/bin/close\n",
  },
  {
    text: "0 0 * * * pg_dump shop | gzip > /backup/shop-$(date +\\%F).sql.gz\n0 12 * * 1 mail -s 'Weekly' team@example.com%Hello,%the report is ready.%\n",
  },
  {
    text: "52 0,12 * * * root certbot renew --quiet\n0 4 8-14 * * root test $(date +\\%u) -eq 6 && /usr/local/sbin/patch-day\n",
    user: true,
  },
  { text: 'MAILTO=""\n*/5 * * * * curl -fsS -m 10 https://hooks.example.com/ping > /dev/null\n' },
  {
    text: "MAILTO=root\n15 3 1-7 * 1 /srv/first-monday.sh\n0 0 */2 * 1 /srv/odd.sh\n0 5 1,15 * * /srv/twice.sh\n",
  },
  { text: "TZ=Europe/London\n0 8 * jan-mar,oct mon,wed,fri /srv/season.sh\n0 22 31 12 * /srv/year-end.sh\n" },
  {
    text: "CRON_TZ=Asia/Hong_Kong\n30 8 * * * /data/kpi.sh\nCRON_TZ=Europe/Berlin\n30 8 * * * /data/kpi.sh\n",
  },
  {
    text: "*/20 9-17 * * 1-5 nice -n 19 /usr/bin/php /var/www/app/artisan schedule:run\n* * * * * cd /var/www/app && php artisan schedule:run >> /dev/null 2>&1\n",
  },
  { text: "0 2 * * 0-6/2 sudo -u deploy /srv/x.sh\n5-55/10 * * * * timeout 300 node /srv/jobs/tick.mjs\n" },
  {
    text: "31  3 *   *   *   acme   [ -x /usr/bin/acme ] && /usr/bin/acme --cron >> /var/log/acme.log 2>&1\n",
    user: true,
  },
  { text: "~ 4 * * * /srv/spread.sh\n0~30 5 * * * /srv/half.sh\n" },
  { text: "\uFEFF0 1 * * * python3 /srv/a.py\r\n0 2 * * 5,6 ENV=prod /srv/b.rb\r\nnot a line\r\n" },
];

const job = (name: string, spec: string, rest = "", more = "") =>
  `apiVersion: batch/v1
kind: CronJob
metadata: { name: ${name}, namespace: prod${more} }
spec:
  ${spec}
  jobTemplate:
    spec:${rest}
      template:
        spec:
          restartPolicy: OnFailure
          containers:
            - { name: main, image: "registry.example.com/${name}:1.8", command: [/bin/run], args: ["--once"] }
`;

/** Manifests of CronJobs as people write them. */
export const CRONJOBS: readonly string[] = [
  job("hello", 'schedule: "* * * * *"'),
  job(
    "nightly",
    'schedule: "0 2 * * *"\n  timeZone: Asia/Kolkata\n  concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 100\n  suspend: false',
    "\n      backoffLimit: 2\n      activeDeadlineSeconds: 600",
  ),
  job(
    "report",
    'schedule: "17 2 * * *"\n  concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 300\n  successfulJobsHistoryLimit: 3',
    "\n      backoffLimit: 0\n      activeDeadlineSeconds: 1800\n      ttlSecondsAfterFinished: 3600",
  ),
  job(
    "poll",
    "schedule: '*/5 * * * *'\n  concurrencyPolicy: Replace\n  successfulJobsHistoryLimit: 2\n  failedJobsHistoryLimit: 0",
  ),
  job("quarter", 'schedule: "0,15,30,45 * * * *"\n  startingDeadlineSeconds: 15'),
  job("suspended", 'schedule: "*/1 * * * *"\n  suspend: true'),
  job("weekdays", 'schedule: "0 20 * * 1-5"\n  timeZone: Europe/Berlin'),
  job("other-month", 'schedule: "0 0 1 */2 *"'),
  job("odd-or-monday", 'schedule: "0 0 */2 * 1"'),
  job("both-days", 'schedule: "30 6 1,15 * MON"'),
  job("sundays", 'schedule: "0 3 * * SUN"\n  timeZone: America/New_York'),
  job("gap", 'schedule: "30 2 * * *"\n  timeZone: Europe/Berlin'),
  job("twice", 'schedule: "30 1 * * *"\n  timeZone: America/New_York'),
  job("macro", 'schedule: "@daily"'),
  job("every", 'schedule: "@every 90m"', "", ', creationTimestamp: "2026-01-01T00:07:00Z"'),
  job("with-tz", 'schedule: "CRON_TZ=Asia/Tokyo 0 9 * * *"'),
  job("question", 'schedule: "0 9 ? * 2"'),
  job("parallel", 'schedule: "0 */6 * * *"', "\n      completions: 5\n      parallelism: 2"),
  job("steps", 'schedule: "3-59/15 8-18/2 * JAN-MAR *"'),
  `apiVersion: v1\nkind: List\nitems:\n${job("listed", 'schedule: "45 23 28-31 * *"')
    .replace(/^(?=.)/gm, "    ")
    .replace("    a", "  - a")}---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: none }\n`,
];
