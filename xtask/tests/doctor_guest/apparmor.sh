# What doctor finds under a profile of AppArmor, and once the rule that it suggests is there.
set -e
mount -t securityfs none /sys/kernel/security
mkdir -p /etc/apparmor.d/local
apparmor_parser -r profile
terrace doctor --json > /out/refused.json || true
terrace doctor > /out/refused.txt || true
# `RULE (a rule in FILE)`
line=$(sed -n 's/.*"\(.* (a rule in [^)]*)\)".*/\1/p' /out/refused.json | sort -u)
echo "line $line"
rule=${line%% (*} file=${line##* }
echo "$rule" > "${file%)}"
apparmor_parser -r profile
terrace doctor --json > /out/allowed.json || true
