# day.sh KILLS: a flight recorder that is killed so often, with the clock stepped by a part of a day
# and a half each time, on a disk that is full for a while.
kills=$1
disk=/run/day
ring=$disk/ring
mkdir $disk
mount -t tmpfs -o size=6m day $disk
step=$((36 * 3600 / kills))
newest() { ls $ring 2>/dev/null | grep 'trec$' | tail -n 1; }
size() { stat -c %s $ring/"$(newest)" 2>/dev/null || echo 0; }
for at in $(seq "$kills"); do
    [ "$at" = $((kills * 3 / 4)) ] && rm $disk/filler
    before=$(newest)
    terrace record --keep 24h --keep-bytes 4m -o $ring >/run/recorder.log 2>&1 &
    recorder=$!
    if [ -e $disk/filler ]; then
        # Without room for a segment it ends by itself, and says so.
        for wait in $(seq 40); do kill -0 $recorder 2>/dev/null || break; sleep 0.1; done
        kill -9 $recorder 2>/dev/null
        wait $recorder 2>/dev/null
        terrace export $ring --to json >/run/day.json && echo opened $at full
    else
        for wait in $(seq 300); do [ "$(newest)" != "$before" ] && break; sleep 0.1; done
        # Some chunks of samples, and a part of the next one.
        for chunk in 1 2 3 4 5 6; do
            held=$(size)
            for wait in $(seq 300); do [ "$(size)" -gt "$held" ] && break; sleep 0.1; done
        done
        sleep "0.$((at * 7 % 10))"
        # For a quarter of the day, and first under a recorder that runs.
        [ "$at" = $((kills / 2)) ] && dd if=/dev/zero of=$disk/filler bs=4k 2>/dev/null; [ ! -e $disk/filler ] || sleep 3
        python3 day.py kill $recorder >/run/killed
        wait $recorder 2>/dev/null
        terrace export $ring --to json >/run/day.json && echo opened $at
        [ -e $disk/filler ] || python3 day.py lost /run/day.json "$(cat /run/killed)" | sed "s/^/lost.$at /"
    fi
    du -sb $ring | cut -f1 | sed "s/^/bytes.$at /"
    date -s "@$(($(date +%s) + step))" >/dev/null
done
python3 day.py age /run/day.json | sed 's/^/hours /'
