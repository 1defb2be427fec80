// The two bars that add up.
