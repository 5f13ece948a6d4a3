SHAPES = []
