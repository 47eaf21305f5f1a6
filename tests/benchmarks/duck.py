"""The nine checks and the latencies as SQL on DuckDB, by which the analysis is measured: duck.py DIR THREADS

Prints the CPU seconds of a second, warm round, and what each check found, as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import duckdb

_TABLES = """
create or replace temp view ops as select * from read_parquet('{0}/ops-*.parquet');
create or replace temp view runs as select * from read_parquet('{0}/runs-*.parquet');
create or replace temp table fates as
select run, coalesce(key, '') as key, value,
  count(*) filter (f = 'publish' and outcome = 'invoke') sent,
  count(*) filter (f = 'publish' and outcome = 'ok') acked,
  count(*) filter (f = 'publish' and outcome = 'fail') failed,
  count(*) filter (f = 'deliver' and outcome = 'ok') delivered,
  min(seq) filter (f = 'publish' and outcome = 'invoke') sent_seq,
  min(seq) filter (f = 'publish' and outcome = 'ok') acked_seq,
  min(t_ns) filter (f = 'publish' and outcome = 'invoke') sent_ns,
  min(t_ns) filter (f = 'publish' and outcome = 'ok') acked_ns,
  min(t_ns) filter (f = 'deliver' and outcome = 'ok') delivered_ns,
  min("offset") filter (outcome = 'ok') lowest,
  max("offset") filter (outcome = 'ok') highest,
  max("offset") filter (f = 'publish' and outcome = 'ok') acked_offset
from read_parquet('{0}/ops-*.parquet')
where value is not null and f in ('publish', 'deliver') group by all;
create or replace temp table wire as
with each as (
  select run, connection, scope, role, t_ns, items,
    unnest(case when key_first is not null
      then list_transform(range(key_first::bigint, key_first::bigint + items), lambda x: x::varchar)
      when len(keys) = 0 then [null::varchar] else keys end) as wire
  from read_parquet('{0}/frames-*.parquet')
  where (role = 'publish' and tap in ('in', 'received')) or (role = 'confirm' and tap in ('out', 'sent')))
select run, connection, scope, wire,
  sum(case when role = 'publish' then case when wire is null then items else 1 end else 0 end) published,
  sum(case when role = 'confirm' then case when wire is null then items else 1 end else 0 end) confirmed,
  min(t_ns) filter (role = 'publish') published_ns,
  min(t_ns) filter (role = 'confirm') confirmed_ns
from each group by all;
"""

_CHECKS = {
    "duplicate": """select count(*) from fates
        where lowest < highest or (lowest is null and sent > 0 and sent < delivered)""",
    "G1a": """select count(*) from fates
        where delivered > 0 and failed > 0 and acked = 0 and failed >= sent""",
    "unseen": """select count(*) from fates join (
          select run, coalesce(key, '') as key, max(seq) drained from ops
          where f = 'drain' and outcome = 'ok' group by all) using (run, key)
        where acked > 0 and delivered = 0 and drained > acked_seq""",
    "lost-write": """with readers as (
          select o.run, coalesce(o.key, '') as key, process, min(o.seq) first_seq,
            max(case when f = 'deliver' then sent_seq end) newest,
            min(case when f = 'deliver' and o.value is not null then "offset" end) low,
            max(case when f = 'deliver' and o.value is not null then "offset" end) high
          from ops o left join fates m on m.run = o.run and m.key = coalesce(o.key, '') and m.value = o.value
          where outcome = 'ok' and f in ('subscribe', 'deliver') group by all)
        select count(distinct (m.run, m.key, m.value)) from fates m join readers using (run, key)
        where acked > 0 and delivered = 0
          and ((acked_offset > low and acked_offset < high)
            or (first_seq < sent_seq and newest > acked_seq))""",
    "polls": """with events as (
          select run, process, coalesce(key, '') as key, seq, f, outcome, "offset",
            sum(case when outcome = 'event' and f in ('connected', 'connection_lost', 'reconnected')
              then 1 else 0 end) over (partition by run, process order by seq) epoch,
            sum(case when f in ('subscribe', 'assign', 'unsubscribe') and outcome in ('ok', 'info')
              then 1 else 0 end) over (partition by run, process, coalesce(key, '') order by seq) moves
          from ops
          where (f in ('deliver', 'publish') and outcome = 'ok' and "offset" is not null)
            or (f in ('subscribe', 'assign', 'unsubscribe') and outcome in ('ok', 'info'))
            or outcome = 'event'),
        ranked as (
          select *, dense_rank() over (partition by run, key order by "offset") place from events
          where f in ('deliver', 'publish') and outcome = 'ok' and "offset" is not null),
        steps as (
          select place - lag(place) over (partition by run, process, key, epoch, moves order by seq) step
          from ranked where f = 'deliver')
        select count(*) filter (step <> 1) from steps""",
    "stuck-request": """select count(*) from (
          select run, process, op_id from ops where op_id is not null group by all
          having count(*) filter (outcome = 'invoke') > 0
            and count(*) filter (outcome <> 'invoke' and coalesce(error, '') <> 'hang') = 0)""",
    "phantom-confirm": """with acks as (
          select run, wire_key wire, count(*) acked from ops
          where f = 'publish' and outcome = 'ok' and wire_key is not null group by all),
        seen as (
          select run, wire, sum(published) published, sum(confirmed) confirmed from wire
          group by all having sum(published) > 0)
        select count(*) from acks join seen using (run, wire) where least(acked, published) > confirmed""",
    "latencies": """with spans as (
          select run, 'publish-confirm' measure, acked_ns - sent_ns ns from fates
          union all select run, 'publish-deliver', delivered_ns - sent_ns from fates
          union all select run, 'wire-confirm', confirmed_ns - published_ns from wire where wire is not null),
        cells as (select client, scenario, measure, ns from spans join runs using (run) where ns >= 0)
        select count(*) from (
          select client, scenario, measure, count(*), quantile_cont(round(ns / 1000), [0.5, 0.9, 0.99, 1.0])
          from cells group by all
          union all
          select client, '', measure, count(*), quantile_cont(round(ns / 1000), [0.5, 0.9, 0.99, 1.0])
          from cells group by all)""",
}


def main(folder: str, threads: str) -> None:
    """Two rounds; the second one counts."""
    connection = duckdb.connect()
    connection.execute(f"set threads = {int(threads)}")
    found: dict[str, int] = {}
    begun = 0.0
    for _ in range(2):
        begun = time.process_time()
        connection.execute(_TABLES.format(folder))
        for name, query in _CHECKS.items():
            (row,) = connection.execute(query).fetchall()
            found[name] = row[0]
    print(json.dumps({"cpu": time.process_time() - begun, "found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
