module fakebrokers/kit

go 1.23
