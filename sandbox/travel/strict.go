package travel

func judgeStrict(w *World, q *Query, p *Plan, j *Judgement) {}
