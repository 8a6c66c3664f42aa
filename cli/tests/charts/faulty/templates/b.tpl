{{ required "need" .Values.nope }}{{ fail "no" }}
